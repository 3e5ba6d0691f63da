"""Lines in the format of Kafka's console producer (its LineMessageReader).

    HEADER:VALUE,HEADER:VALUE<tab>KEY<tab>VALUE

Keys and values keep their bytes, also where they are not UTF-8. Kafka's tool replaces
those bytes by U+FFFD.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from sharecons._record import Headers
from sharecons.cli.format_properties import is_true
from sharecons.cli.produce.new_line import LineError, NewLine
from sharecons.errors import ConfigurationError

__all__ = ["PROPERTIES", "LineFormat"]

PROPERTIES: Final = (
    "parse.key",
    "parse.headers",
    "ignore.error",
    "key.separator",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "null.marker",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How a line is divided into headers, key and value.

    Attributes:
        has_key: the line has a key, which ends at the first `key_separator`.
        has_headers: it begins with headers, which end at the first `headers_delimiter`.
        lenient: a missing separator is no error: the part is missing as well.
        headers_separator: between two headers.
        name_separator: between a header's name and its value.
        null_marker: a key, value or header value that is equal to it is null.
    """

    has_key: bool = False
    has_headers: bool = False
    lenient: bool = False
    key_separator: bytes = b"\t"
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    name_separator: bytes = b":"
    null_marker: bytes | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "LineFormat":
        """Return the format that Kafka's properties describe.

        Raises:
            ConfigurationError: a value is invalid, or two separators are equal.
        """
        _check_separators(properties)
        marker = properties.get("null.marker")
        return cls(
            has_key=is_true(properties, "parse.key"),
            has_headers=is_true(properties, "parse.headers"),
            lenient=is_true(properties, "ignore.error"),
            key_separator=properties.get("key.separator", "\t").encode(),
            headers_delimiter=properties.get("headers.delimiter", "\t").encode(),
            headers_separator=properties.get("headers.separator", ",").encode(),
            name_separator=properties.get("headers.key.separator", ":").encode(),
            null_marker=None if marker is None else marker.encode(),
        )

    def parse(self, line: bytes) -> NewLine:
        """Return the record in a line.

        Raises:
            LineError: a separator is missing, or a header's name is invalid.
        """
        headers, line = self._split(
            line, self.has_headers, self.headers_delimiter, "headers delimiter"
        )
        key, value = self._split(
            line, self.has_key, self.key_separator, "key separator"
        )
        return NewLine(
            value=self._nullable(value),
            key=None if key is None else self._nullable(key),
            headers=self._parse_headers(headers),
        )

    def _split(
        self, line: bytes, present: bool, separator: bytes, name: str
    ) -> tuple[bytes | None, bytes]:
        if not present:
            return None, line
        part, found, rest = line.partition(separator)
        if found:
            return part, rest
        if self.lenient:
            return None, line
        raise LineError(f"no {name} {separator.decode()!r}")

    def _nullable(self, part: bytes) -> bytes | None:
        return None if part == self.null_marker else part

    def _parse_headers(self, text: bytes | None) -> Headers:
        if text is None or text == self.null_marker:
            return ()
        return tuple(self._parse_header(pair) for pair in self._pairs(text))

    def _pairs(self, text: bytes) -> Iterator[bytes]:
        pairs = text.split(self.headers_separator)
        if len(pairs) > 1:
            # Java's split leaves empty parts at the end out.
            while pairs and not pairs[-1]:
                pairs.pop()
        yield from pairs

    def _parse_header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self.name_separator)
        if not found:
            if not self.lenient:
                separator = self.name_separator.decode()
                raise LineError(f"no header key separator {separator!r} in {pair!r}")
            return _decode_name(pair), None
        if name == self.null_marker:
            raise LineError(f"a header's name is the null marker {name.decode()!r}")
        return _decode_name(name), self._nullable(value)


def _decode_name(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise LineError(f"the header name {name!r} is not valid UTF-8") from error


def _check_separators(properties: Mapping[str, str]) -> None:
    """Check the separators as Kafka's tool does, and that none of them is empty."""
    key = {"key.separator": properties.get("key.separator", "\t")}
    headers = {
        "headers.delimiter": properties.get("headers.delimiter", "\t"),
        "headers.separator": properties.get("headers.separator", ","),
        "headers.key.separator": properties.get("headers.key.separator", ":"),
    }
    for name, separator in (key | headers).items():
        if not separator:
            raise ConfigurationError(f"property {name} must not be empty")
        if separator == properties.get("null.marker"):
            raise ConfigurationError(f"null.marker and {name} must not be equal")
    for first, second in combinations(headers, 2):
        if headers[first] == headers[second]:
            raise ConfigurationError(f"{first} and {second} must not be equal")
