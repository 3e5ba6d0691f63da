"""Properties from all places, one over the other."""

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Final

from sharecons.config.properties import jaas
from sharecons.config.properties.errors import BrokenError
from sharecons.config.properties.known_properties import ALIASES, READ, complaint
from sharecons.config.properties.security import expanded
from sharecons.errors import ConfigurationError

__all__ = ["Gathered"]

PREFIX: Final = "SHARECONS_"


class Gathered:
    """Properties, and where each came from; what is added later wins.

    Attributes:
        properties: under Java's names, logins expanded.
        warnings: a line for each that nobody knows.
    """

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}
        self.warnings: list[str] = []
        self._origins: dict[str, str] = {}

    def add(self, found: Mapping[str, str], origins: Mapping[str, str]) -> None:
        """Add what one place says; `origins` tells of each name where it stands.

        Raises:
            ConfigurationError: a login is misspelt.
        """
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

    def add_file(self, path: str | PathLike[str]) -> None:
        """Add what a properties file says; raises `ConfigurationError`."""
        # Its reader takes 10 ms to load, which is for those who have a file.
        from sharecons.config.properties import files

        lines = files.read(path)
        self.add(
            {name: value for name, value, _ in lines},
            {name: f"{fspath(path)}, line {line}" for name, _, line in lines},
        )

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Add what variables say; others of that prefix belong to others."""
        variables = {
            name.removeprefix(PREFIX).lower().replace("_", "."): name
            for name in environ
            if name.startswith(PREFIX)
        }
        known = {name: variables[name] for name in variables.keys() & READ}
        self.add({name: environ[variable] for name, variable in known.items()}, known)

    def told(self, error: BrokenError) -> ConfigurationError:
        """The same with where the property came from."""
        origin = self._origins.get(error.property)
        return ConfigurationError(f"{origin}: {error}" if origin else str(error))
