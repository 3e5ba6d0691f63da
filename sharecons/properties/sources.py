"""Merges properties from a file, the environment and options."""

from collections.abc import Mapping
from os import PathLike, fspath

from sharecons.config.security import Security
from sharecons.config.validation import check_unicode
from sharecons.errors import ConfigurationError
from sharecons.properties import jaas
from sharecons.properties.errors import PropertyError, check_property
from sharecons.properties.known_properties import (
    ALIASES,
    SUPPORTED,
    find_variables,
    unknown_variable_warning,
    unknown_warning,
)
from sharecons.properties.security import build_security, expand, missing_protocol

__all__ = ["MergedProperties"]


class MergedProperties:
    """Properties and the origin of each; later additions override earlier ones.

    Attributes:
        properties: the properties under Java's names (see `security.expand`).
        warnings: one line for each property or variable without an effect.
    """

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}
        self.warnings: list[str] = []
        self._origins: dict[str, str] = {}

    def add(self, found: Mapping[str, str], origins: Mapping[str, str]) -> None:
        """Add the properties of one source.

        Args:
            origins: the file and line, or another place, by property. Messages about
                other properties have only their names.

        Raises:
            ConfigurationError: a value is not valid Unicode, or `sasl.jaas.config` is
                invalid.
        """
        self._origins |= origins
        for name in found:
            if warning := unknown_warning(name):
                self.warn(name, warning)
        try:
            for name, value in found.items():
                check_property(name, check_unicode, value)
            added = expand(found)
        except PropertyError as error:
            raise self.with_origin(error) from error
        for name in added.keys() - found.keys():
            # The name comes from an alias or from `sasl.jaas.config`.
            source = next((k for k in found if ALIASES.get(k) == name), jaas.NAME)
            if source in origins:
                self._origins[name] = origins[source]
        self.properties |= added

    def add_file(self, path: str | PathLike[str]) -> None:
        """Add the properties in a file.

        Raises:
            ConfigurationError: the file cannot be read, or is not a properties file.
        """
        # Imported here: it takes 10 ms, and only a file needs it.
        from sharecons.properties import files

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

    def build_security(self) -> Security:
        """Return TLS and SASL; warn if properties for them have no effect.

        Raises:
            PropertyError: a property is invalid or missing.
        """
        if (found := missing_protocol(self.properties)) is not None:
            self.warn(found.property, str(found))
        return build_security(self.properties)

    def warn(self, name: str, text: str) -> None:
        """Add a warning about a property; its origin goes before the text."""
        self.warnings.append(self._locate(name, text))

    def with_origin(
        self, error: PropertyError, default: str | None = None
    ) -> ConfigurationError:
        """Return the error with the origin of the property in its message.

        Args:
            default: the origin of a missing property.
        """
        return ConfigurationError(self._locate(error.property, str(error), default))

    def _locate(self, name: str, text: str, default: str | None = None) -> str:
        origin = self._origins.get(name, default)
        return f"{origin}: {text}" if origin else text
