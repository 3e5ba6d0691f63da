"""Properties that describe lines of text, as Kafka's console tools have them.

    --reader-property parse.key=true --reader-property key.separator=:

Unlike Kafka's tools, an unknown name is an error: it is probably misspelled, and the
lines would be read or written in another format.
"""

import argparse
from collections.abc import Collection, Iterable, Mapping

from sharecons.errors import ConfigurationError
from sharecons.similar_names import did_you_mean

__all__ = ["is_true", "parse_property", "read_format_properties"]


def parse_property(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE; spaces belong to the value, which can be a separator."""
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value


def read_format_properties(
    file: str | None,
    given: Iterable[tuple[str, str]],
    *,
    option: str,
    known: Collection[str],
) -> dict[str, str]:
    """Return the properties of a file and of an option, which overrides the file.

    Raises:
        ConfigurationError: the file cannot be read, or a name is unknown.
    """
    found: dict[str, str] = {}
    if file is not None:
        # Imported late: most calls have no file.
        from sharecons.properties.files import read_properties

        for name, value, line in read_properties(file):
            _check_name(name, known, f"{file}, line {line}")
            found[name] = value
    for name, value in given:
        _check_name(name, known, option)
        found[name] = value
    return found


def is_true(properties: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Return a property that is true or false.

    Raises:
        ConfigurationError: it is neither.
    """
    text = properties.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigurationError(
            f"property {name} must be true or false, not {properties[name]!r}"
        )
    return text == "true"


def _check_name(name: str, known: Collection[str], origin: str) -> None:
    if name not in known:
        raise ConfigurationError(
            f"{origin}: unknown property {name!r}; known are "
            f"{', '.join(sorted(known))}{did_you_mean(name, known)}"
        )
