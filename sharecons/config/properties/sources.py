"""Merges properties from a file, the environment and options."""

from collections.abc import Mapping
from os import PathLike, fspath

from sharecons.config.properties import jaas
from sharecons.config.properties.errors import PropertyError
from sharecons.config.properties.known_properties import (
    ALIASES,
    SUPPORTED,
    find_variables,
    unknown_variable_warning,
    unknown_warning,
)
from sharecons.config.properties.security import expand, missing_protocol
from sharecons.errors import ConfigurationError

__all__ = ["MergedProperties"]


class MergedProperties:
    """Properties and the origin of each; later additions override earlier ones.

    Attributes:
        properties: the properties under Java's names (see `security.expand`).
        warnings: one line for each unknown property or environment variable.
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
        variables = find_variables(environ)
        for name in variables:
            if warning := unknown_variable_warning(name):
                self.warnings.append(warning)
        known = {name: variables[name] for name in variables.keys() & SUPPORTED}
        self.add({name: environ[variable] for name, variable in known.items()}, known)

    def protocol_warning(self) -> str | None:
        """Return a warning if the security protocol is missing, else None.

        Then the client connects without TLS and SASL, and properties for these have no
        effect.
        """
        if (found := missing_protocol(self.properties)) is None:
            return None
        return f"{self._origins[found.property]}: {found}"

    def with_origin(
        self, error: PropertyError, default: str | None = None
    ) -> ConfigurationError:
        """Return the error with the origin of the property in its message.

        Args:
            default: the origin of a missing property.
        """
        origin = self._origins.get(error.property, default)
        return ConfigurationError(f"{origin}: {error}" if origin else str(error))
