"""Merges properties from a file, the environment and options."""

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Final

from sharecons.config.properties import jaas
from sharecons.config.properties.errors import PropertyError
from sharecons.config.properties.known_properties import (
    ALIASES,
    SUPPORTED,
    unknown_warning,
)
from sharecons.config.properties.security import expand
from sharecons.errors import ConfigurationError

__all__ = ["MergedProperties"]

PREFIX: Final = "SHARECONS_"


class MergedProperties:
    """Properties and the origin of each; later additions override earlier ones.

    Attributes:
        properties: the properties under Java's names (see `security.expand`).
        warnings: one line for each unknown property.
    """

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}
        self.warnings: list[str] = []
        self._origins: dict[str, str] = {}

    def add(self, found: Mapping[str, str], origins: Mapping[str, str]) -> None:
        """Add the properties of one source; `origins` maps each name to its place.

        Raises:
            ConfigurationError: `sasl.jaas.config` is invalid.
        """
        self._origins |= origins
        for name in found:
            if warning := unknown_warning(name):
                self.warnings.append(f"{origins[name]}: {warning}")
        try:
            added = expand(found)
        except PropertyError as error:
            raise self.with_origin(error) from error
        for name in added.keys() - found.keys():
            # The name comes from an alias or from `sasl.jaas.config`.
            source = next((k for k in found if ALIASES.get(k) == name), jaas.NAME)
            self._origins[name] = origins[source]
        self.properties |= added

    def add_file(self, path: str | PathLike[str]) -> None:
        """Add the properties in a file.

        Raises:
            ConfigurationError: the file cannot be read, or is not a properties file.
        """
        # Imported here: it takes 10 ms, and only a file needs it.
        from sharecons.config.properties import files

        lines = files.read_properties(path)
        self.add(
            {name: value for name, value, _ in lines},
            {name: f"{fspath(path)}, line {line}" for name, _, line in lines},
        )

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Add the supported properties in environment variables; ignore others."""
        variables = {
            name.removeprefix(PREFIX).lower().replace("_", "."): name
            for name in environ
            if name.startswith(PREFIX)
        }
        known = {name: variables[name] for name in variables.keys() & SUPPORTED}
        self.add({name: environ[variable] for name, variable in known.items()}, known)

    def with_origin(
        self, error: PropertyError, default: str | None = None
    ) -> ConfigurationError:
        """Return the error with the origin of the property in its message.

        Args:
            default: the origin of a missing property.
        """
        origin = self._origins.get(error.property, default)
        return ConfigurationError(f"{origin}: {error}" if origin else str(error))
