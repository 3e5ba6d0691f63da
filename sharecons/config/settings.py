"""Where the settings of a client come from: arguments, environment, a file of Kafka's.

An argument wins over an environment variable, and that over the file. Nothing heavy is
loaded here until `load` is called: the command line's help comes by.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Final

from sharecons.errors import ConfigurationError

if TYPE_CHECKING:
    from sharecons.config.properties.sources import Gathered
    from sharecons.config.security import Security

__all__ = ["DEFAULT_CLIENT_ID", "DEFAULT_TIMEOUT", "ClientSettings", "load"]

DEFAULT_CLIENT_ID: Final = "sharecons"
DEFAULT_TIMEOUT: Final = 30.0

CONFIG: Final = "SHARECONS_COMMAND_CONFIG"
SERVERS: Final = "bootstrap.servers"
CLIENT_ID: Final = "client.id"
TIMEOUTS: Final = ("default.api.timeout.ms", "request.timeout.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What it takes to ask a cluster something.

    Attributes:
        bootstrap_servers: `host:port`, several with commas.
        security: TLS and SASL; None for plain TCP.
        client_id: for brokers' logs and quotas.
        timeout: seconds for a whole question.
        warnings: a line for each property that nobody knows.
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
    """Put together what a client needs.

    Args:
        bootstrap_servers: win over those of environment and file.
        command_config: path of a Kafka properties file.
        properties: single properties, which win over environment and file.
        timeout: seconds.
        environ: environment variables; the process's if not given.

    Raises:
        ConfigurationError: one line: the file and its line, the variable or the
            property, and what is wrong with it.
    """
    # Loads ssl and all about logins, which help has no use for.
    from sharecons.config.properties.errors import BrokenError
    from sharecons.config.properties.sources import Gathered

    environ = os.environ if environ is None else environ
    gathered = Gathered()
    if file := command_config or environ.get(CONFIG):
        gathered.add_file(file)
    gathered.add_environment(environ)
    given = properties or {}
    gathered.add(given, dict.fromkeys(given, "--command-property"))
    if bootstrap_servers is not None:
        gathered.add({SERVERS: bootstrap_servers}, {SERVERS: "--bootstrap-server"})
    try:
        return _settings(gathered, timeout)
    except BrokenError as error:
        raise gathered.told(error) from error


def _settings(gathered: "Gathered", timeout: float | None) -> ClientSettings:
    properties = gathered.properties
    return ClientSettings(
        bootstrap_servers=_servers(properties),
        security=_security(properties),
        client_id=_client_id(properties),
        timeout=_timeout(properties) if timeout is None else timeout,
        warnings=tuple(gathered.warnings),
    )


def _servers(properties: Mapping[str, str]) -> str:
    from sharecons.config.properties.errors import BrokenError
    from sharecons.config.validation import parse_bootstrap

    servers = properties.get(SERVERS, "").strip()
    if not servers:
        raise ConfigurationError(
            "no brokers to begin with: give --bootstrap-server HOST:PORT, "
            "SHARECONS_BOOTSTRAP_SERVERS, or bootstrap.servers in the properties file"
        )
    try:
        parse_bootstrap(servers)
    except ConfigurationError as error:
        # It begins with the argument's name, and the property's comes before.
        raise BrokenError(SERVERS, _after_colon(str(error))) from error
    return servers


def _client_id(properties: Mapping[str, str]) -> str:
    from sharecons.config.properties.errors import check
    from sharecons.config.validation import check_string

    client_id = properties.get(CLIENT_ID) or DEFAULT_CLIENT_ID
    check(CLIENT_ID, check_string, client_id)
    return client_id


def _security(properties: Mapping[str, str]) -> "Security | None":
    from sharecons.config.properties.security import parts_of
    from sharecons.config.security import Security

    context, credentials = parts_of(properties)
    if context is None and credentials is None:
        return None
    return Security(ssl_context=context, credentials=credentials)


def _timeout(properties: Mapping[str, str]) -> float:
    from sharecons.config.properties.errors import BrokenError

    for name in TIMEOUTS:
        if text := properties.get(name, "").strip():
            if not text.isdecimal() or not int(text):
                raise BrokenError(name, f"must be milliseconds, not {text!r}")
            return int(text) / 1000
    return DEFAULT_TIMEOUT


def _after_colon(text: str) -> str:
    return text.partition(": ")[2] or text
