"""Properties from all places, one over the other, as a client's settings."""

import os
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Final

from sharecons.errors import ConfigurationError
from sharecons.options import parse_bootstrap
from sharecons.properties import files, jaas
from sharecons.properties.broken import BrokenError
from sharecons.properties.names import ALIASES, READ, complaint
from sharecons.properties.security import broken_or_security, expanded
from sharecons.settings import DEFAULT_CLIENT_ID, DEFAULT_TIMEOUT, ClientSettings

__all__ = ["gather"]

PREFIX: Final = "SHARECONS_"
CONFIG: Final = "SHARECONS_COMMAND_CONFIG"
SERVERS: Final = "bootstrap.servers"
TIMEOUTS: Final = ("default.api.timeout.ms", "request.timeout.ms")


class _Gathered:
    """Properties, and where each came from; what is added later wins."""

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}
        self.warnings: list[str] = []
        self._origins: dict[str, str] = {}

    def add(self, found: Mapping[str, str], origins: Mapping[str, str]) -> None:
        """Add what one place says; `origins` tells of each name what to call it."""
        self._origins |= origins
        for name in found:
            if words := complaint(name):
                self.warnings.append(f"{origins[name]}: {words}")
        try:
            added = expanded(found)
        except BrokenError as error:
            raise self.told(error) from error
        for name in added.keys() - found.keys():
            # As it was written there, or what it was taken out of.
            spelt = next((k for k in found if ALIASES.get(k) == name), jaas.NAME)
            self._origins[name] = origins[spelt]
        self.properties |= added

    def told(self, error: BrokenError) -> ConfigurationError:
        origin = self._origins.get(error.property)
        return ConfigurationError(f"{origin}: {error}" if origin else str(error))


def gather(
    servers: str | None,
    config: str | PathLike[str] | None,
    given: Mapping[str, str] | None,
    timeout: float | None,
    environ: Mapping[str, str] | None,
) -> ClientSettings:
    """See `sharecons.settings.load`."""
    environ = os.environ if environ is None else environ
    gathered = _Gathered()
    config = config or environ.get(CONFIG)
    if config:
        _add_file(gathered, config)
    _add_environment(gathered, environ)
    given = given or {}
    gathered.add(given, dict.fromkeys(given, "--command-property"))
    if servers is not None:
        gathered.add({SERVERS: servers}, {SERVERS: "--bootstrap-server"})
    try:
        return _settings(gathered, timeout)
    except BrokenError as error:
        raise gathered.told(error) from error


def _add_file(gathered: _Gathered, path: str | PathLike[str]) -> None:
    lines = files.read(path)
    gathered.add(
        {name: value for name, value, _ in lines},
        {name: f"{fspath(path)}, line {line}" for name, _, line in lines},
    )


def _add_environment(gathered: _Gathered, environ: Mapping[str, str]) -> None:
    variables = {
        name.removeprefix(PREFIX).lower().replace("_", "."): name
        for name in environ
        if name.startswith(PREFIX) and name != CONFIG
    }
    # Others of that prefix belong to others.
    known = {name: variable for name, variable in variables.items() if name in READ}
    gathered.add({name: environ[variable] for name, variable in known.items()}, known)


def _settings(gathered: _Gathered, timeout: float | None) -> ClientSettings:
    properties = gathered.properties
    servers = properties.get(SERVERS, "").strip()
    if not servers:
        raise ConfigurationError(
            "no brokers to begin with: give --bootstrap-server HOST:PORT, "
            "SHARECONS_BOOTSTRAP_SERVERS, or bootstrap.servers in the properties file"
        )
    try:
        parse_bootstrap(servers)
    except ConfigurationError as error:
        raise BrokenError(SERVERS, _after_colon(str(error))) from error
    security = broken_or_security(properties)
    return ClientSettings(
        bootstrap_servers=servers,
        security=None if security.protocol == "PLAINTEXT" else security,
        client_id=properties.get("client.id") or DEFAULT_CLIENT_ID,
        timeout=_timeout(properties) if timeout is None else timeout,
        warnings=tuple(gathered.warnings),
    )


def _timeout(properties: Mapping[str, str]) -> float:
    for name in TIMEOUTS:
        if text := properties.get(name, "").strip():
            if not text.isdecimal() or not int(text):
                raise BrokenError(name, f"must be milliseconds, not {text!r}")
            return int(text) / 1000
    return DEFAULT_TIMEOUT


def _after_colon(text: str) -> str:
    return text.partition(": ")[2] or text
