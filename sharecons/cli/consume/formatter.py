"""Records as lines: in the format of Kafka's console consumers, or as JSON.

Lines have the bytes of keys, values and headers as they are. On a terminal these are
escaped, because it would execute control characters; separators are not.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sharecons._record import Record, TimestampType
from sharecons.cli.consume.deserializers import (
    DeserializeError,
    Deserializer,
    find_deserializer,
)
from sharecons.cli.format_properties import is_true
from sharecons.cli.record_text import record_object
from sharecons.escaping import escape, json_text

__all__ = ["PROPERTIES", "RecordFormat", "format_json"]

DESERIALIZERS: Final = ("key.deserializer", "value.deserializer")
PROPERTIES: Final = (
    "print.timestamp",
    "print.partition",
    "print.offset",
    "print.delivery",
    "print.epoch",
    "print.headers",
    "print.key",
    "print.value",
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
    *DESERIALIZERS,
    "headers.deserializer",
)

TIMESTAMP_TYPES: Final = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def format_json(record: Record) -> bytes:
    """Return a record as a JSON object in a line; its bytes are text, or hexadecimal.

    The line is ASCII, and safe on terminals.
    """
    row = {
        **record_object(record, "text"),
        "delivery_count": record.delivery_count,
    }
    return f"{json_text(row)}\n".encode()


class RecordFormat:
    """The format that properties of Kafka's DefaultMessageFormatter describe.

    Args:
        terminal_encoding: the encoding of the terminal that lines are written to; None
            for a file or a pipe.

    Raises:
        ConfigurationError: a value is invalid.
    """

    def __init__(
        self, properties: Mapping[str, str], terminal_encoding: str | None = None
    ) -> None:
        self._terminal_encoding = terminal_encoding
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_end = properties.get("line.separator", "\n").encode()
        self._header_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._key, self._value, self._header = (
            find_deserializer(properties[name]) if name in properties else None
            for name in (*DESERIALIZERS, "headers.deserializer")
        )
        columns: dict[str, Callable[[Record], bytes]] = {
            "print.timestamp": _timestamp,
            "print.partition": lambda record: b"Partition:%d" % record.partition,
            "print.offset": lambda record: b"Offset:%d" % record.offset,
            "print.delivery": lambda record: b"Delivery:%d" % record.delivery_count,
            # ShareFetch responses have no leader epoch; Kafka's tool writes this as
            # well.
            "print.epoch": lambda record: b"Epoch:NOT_PRESENT",
            "print.headers": self._headers,
            "print.key": lambda record: self._field("key", record.key, self._key),
            "print.value": lambda record: self._field(
                "value", record.value, self._value
            ),
        }
        self._columns = [
            column
            for name, column in columns.items()
            if is_true(properties, name, default=name == "print.value")
        ]

    def format(self, record: Record) -> bytes:
        """Return the line for a record, with its end; empty if it has no columns.

        Raises:
            DeserializeError: a part of the record cannot be deserialized.
        """
        if not self._columns:
            return b""
        parts = self._separator.join(column(record) for column in self._columns)
        return parts + self._line_end

    def _field(
        self, part: str, data: bytes | None, deserializer: Deserializer | None
    ) -> bytes:
        if data is None:
            return self._null
        if deserializer is not None:
            try:
                data = deserializer(data).encode()
            except DeserializeError as error:
                raise DeserializeError(f"{part}: {error}") from error
        return self._safe(data)

    def _headers(self, record: Record) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._header_separator.join(self._each_header(record))

    def _each_header(self, record: Record) -> Iterator[bytes]:
        for name, value in record.headers:
            raw = name.encode("utf-8", "surrogateescape")
            yield self._safe(raw) + b":" + self._field("header", value, self._header)

    def _safe(self, data: bytes) -> bytes:
        encoding = self._terminal_encoding
        if encoding is None:
            return data
        text = escape(data.decode("utf-8", "backslashreplace"), encoding)
        return text.encode(encoding)


def _timestamp(record: Record) -> bytes:
    kind = TIMESTAMP_TYPES[TimestampType(record.timestamp_type)]
    return f"{kind}:{record.timestamp}".encode()
