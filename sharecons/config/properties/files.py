"""Properties files as `java.util.Properties` reads them, with the lines' numbers."""

from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path

from javaproperties import InvalidUEscapeError, KeyValue, parse

from sharecons.errors import ConfigurationError

__all__ = ["read"]


def read(path: str | PathLike[str]) -> list[tuple[str, str, int]]:
    """Give name, value and line of each property; of a name that comes again, all.

    Raises:
        ConfigurationError: there is no such file, or it is none of properties.
    """
    shown = fspath(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{shown}: {error.strerror or error}") from error
    if b"\0" in data:
        raise ConfigurationError(f"{shown}: this is no text, and no properties file")
    return list(_properties(_text(data), shown))


def _text(data: bytes) -> str:
    # Java takes a file for Latin-1. Bytes that happen to be UTF-8 were meant so.
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _properties(text: str, shown: str) -> Iterator[tuple[str, str, int]]:
    line = 1
    try:
        for element in parse(text):
            if isinstance(element, KeyValue):
                yield element.key, element.value, line
            line += len(element.source.splitlines())
    except InvalidUEscapeError as error:
        raise ConfigurationError(
            f"{shown}, line {line}: {error.escape} is not \\u and four hexadecimal "
            "digits; a backslash itself is written \\\\"
        ) from error
