"""A parser of properties files in the format of `java.util.Properties`."""

from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path

from javaproperties import InvalidUEscapeError, KeyValue, parse

from sharecons.errors import ConfigurationError
from sharecons.escaping import to_file_name

__all__ = ["read_properties"]


def read_properties(path: str | PathLike[str]) -> list[tuple[str, str, int]]:
    """Return name, value and line number of each property, with duplicates.

    Raises:
        ConfigurationError: the file cannot be read, or is not a properties file.
    """
    shown = fspath(path)
    try:
        data = Path(to_file_name(shown)).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{shown}: {error.strerror or error}") from error
    if b"\0" in data:
        raise ConfigurationError(
            f"{shown}: not a properties file: it contains a null byte"
        )
    return list(_parse(_decode(data), shown))


def _decode(data: bytes) -> str:
    # Java reads files as Latin-1. Bytes that are valid UTF-8 are most likely UTF-8.
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _parse(text: str, shown: str) -> Iterator[tuple[str, str, int]]:
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
