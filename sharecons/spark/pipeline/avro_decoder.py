"""Decodes Avro values with fastavro; each must be one record of the schema.

fastavro accepts some bytes that no writer produces: negative indexes of unions and
enums, booleans other than 0 and 1, numbers with superfluous bytes. So a decoded record
is encoded again, and the bytes must be equal. Arrays and maps have several encodings,
so values of schemas with these are not compared.
"""

from io import BytesIO
from typing import Any, Final

import fastavro

from sharecons.spark.pipeline.avro_schemas import AvroSchema
from sharecons.spark.pipeline.errors import InvalidValueError
from sharecons.spark.pipeline.framing import FRAME_SIZE, is_framed

__all__ = ["AvroDecoder"]

_REASON: Final = "not Avro of this schema"


class AvroDecoder:
    """Decodes values of one schema, which is both the writer's and the reader's."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema: Any = fastavro.parse_schema(schema.plain)
        self._convert = schema.column.convert
        self._is_unique = not _has_blocks(schema.plain)

    def decode(self, value: bytes) -> Any:
        """Return the row.

        Raises:
            InvalidValueError: the value is not one record of the schema.
        """
        if not value:
            raise InvalidValueError("empty value")
        try:
            return self._convert(self._decoded(value))
        except InvalidValueError:
            if self._is_framed_record(value):
                raise InvalidValueError(
                    "in Confluent's framing (--framing confluent removes it)"
                ) from None
            raise

    def _decoded(self, value: bytes) -> Any:
        data = BytesIO(value)
        try:
            record = fastavro.schemaless_reader(data, self._schema, None)
        except (EOFError, ValueError, LookupError, OverflowError) as error:
            raise InvalidValueError(f"{_REASON}: {_why(error)}") from None
        if data.read(1):
            raise InvalidValueError(f"{_REASON}: bytes left over")
        if self._is_unique and self._encoded(record) != value:
            raise InvalidValueError(f"{_REASON}: no writer encodes a record like this")
        return record

    def _encoded(self, record: Any) -> bytes:
        data = BytesIO()
        fastavro.schemaless_writer(data, self._schema, record)
        return data.getvalue()

    def _is_framed_record(self, value: bytes) -> bool:
        if not is_framed(value):
            return False
        try:
            self._convert(self._decoded(value[FRAME_SIZE:]))
        except InvalidValueError:
            return False
        return True


def _why(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "truncated"
    if isinstance(error, LookupError):
        return "truncated, or an index out of range"
    if isinstance(error, UnicodeDecodeError):
        return "a string that is not UTF-8"
    return "a number out of range"


def _has_blocks(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(map(_has_blocks, schema))
    if not isinstance(schema, dict):
        return False
    if schema["type"] in ("array", "map"):
        return True
    return any(_has_blocks(each["type"]) for each in schema.get("fields", ()))
