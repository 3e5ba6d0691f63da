"""Client settings from arguments, environment variables and a Kafka properties file.

Arguments override environment variables, and these override the file. Slow imports
wait until `load` is called, because the command line's help imports this module.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Final

from sharecons.errors import ConfigurationError

if TYPE_CHECKING:
    from sharecons.config.security import Security
    from sharecons.properties.sources import MergedProperties

__all__ = ["DEFAULT_CLIENT_ID", "DEFAULT_TIMEOUT", "ClientSettings", "load"]

DEFAULT_CLIENT_ID: Final = "sharecons"
DEFAULT_TIMEOUT: Final = 30.0

CONFIG: Final = "SHARECONS_COMMAND_CONFIG"
SERVERS: Final = "bootstrap.servers"
CLIENT_ID: Final = "client.id"
TIMEOUTS: Final = ("default.api.timeout.ms", "request.timeout.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The settings of an admin client.

    Attributes:
        bootstrap_servers: `host:port`, several separated by commas.
        security: TLS and SASL; None for plain TCP.
        client_id: the name in brokers' logs and quotas.
        timeout: seconds for a whole call.
        warnings: one line for each unknown property or environment variable, and one
            if properties for TLS or SASL have no effect without `security.protocol`.
    """

    bootstrap_servers: str
    security: "Security | None" = None
    client_id: str = DEFAULT_CLIENT_ID
    timeout: float = DEFAULT_TIMEOUT
    warnings: tuple[str, ...] = ()


def load(
    *,
    bootstrap_servers: str | None = None,
    command_config: str | PathLike[str] | None = None,
    properties: Mapping[str, str] | None = None,
    timeout: float | None = None,
    environ: Mapping[str, str] | None = None,
) -> ClientSettings:
    """Merge the settings from all sources.

    Args:
        bootstrap_servers: override the addresses of environment and file.
        command_config: the path of a Kafka properties file.
        properties: single properties, which override environment and file.
        timeout: seconds.
        environ: environment variables; by default the variables of the process.

    Raises:
        ConfigurationError: a setting is invalid or missing. The message is one line
            with the file and line, the variable or the property, and the reason.
    """
    # These import ssl, which the command line's help does not need.
    from sharecons.properties.errors import PropertyError
    from sharecons.properties.sources import MergedProperties

    environ = os.environ if environ is None else environ
    merged = MergedProperties()
    if file := command_config or environ.get(CONFIG):
        merged.add_file(file)
    merged.add_environment(environ)
    given = properties or {}
    merged.add(given, dict.fromkeys(given, "--command-property"))
    if bootstrap_servers is not None:
        merged.add({SERVERS: bootstrap_servers}, {SERVERS: "--bootstrap-server"})
    try:
        return _settings(merged, timeout)
    except PropertyError as error:
        raise merged.with_origin(error) from error


def _settings(merged: "MergedProperties", timeout: float | None) -> ClientSettings:
    properties = merged.properties
    return ClientSettings(
        bootstrap_servers=_bootstrap_servers(properties),
        security=merged.build_security(),
        client_id=_client_id(properties),
        timeout=_timeout(properties) if timeout is None else timeout,
        warnings=tuple(merged.warnings),
    )


def _bootstrap_servers(properties: Mapping[str, str]) -> str:
    from sharecons.config.validation import parse_bootstrap
    from sharecons.properties.errors import check_property

    servers = properties.get(SERVERS, "").strip()
    if not servers:
        raise ConfigurationError(
            "no bootstrap servers: set --bootstrap-server HOST:PORT, "
            "SHARECONS_BOOTSTRAP_SERVERS, or bootstrap.servers in the properties file"
        )
    check_property(SERVERS, lambda _, value: parse_bootstrap(value), servers)
    return servers


def _client_id(properties: Mapping[str, str]) -> str:
    from sharecons.config.validation import check_string
    from sharecons.properties.errors import check_property

    client_id = properties.get(CLIENT_ID) or DEFAULT_CLIENT_ID
    check_property(CLIENT_ID, check_string, client_id)
    return client_id


def _timeout(properties: Mapping[str, str]) -> float:
    from sharecons.config.validation import whole_number
    from sharecons.properties.errors import PropertyError

    for name in TIMEOUTS:
        if text := properties.get(name, "").strip():
            if (milliseconds := whole_number(text) or 0) <= 0:
                raise PropertyError(
                    name, f"must be a positive number of milliseconds, not {text!r}"
                )
            return milliseconds / 1000
    return DEFAULT_TIMEOUT
