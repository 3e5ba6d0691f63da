"""Decodes a column of values, in Spark's Python workers, to typed rows and reasons.

Both are fields of one struct; for each value one of them is null.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as spark

from sharecons.spark.pipeline.avro_schemas import read_schema
from sharecons.spark.pipeline.converters import Column, Conversion, row_of
from sharecons.spark.pipeline.errors import InvalidValueError
from sharecons.spark.pipeline.framing import ConfluentFraming
from sharecons.spark.pipeline.json_decoder import JsonDecoder
from sharecons.spark.pipeline.timestamps import UNITS, Timestamps, zone_of

__all__ = ["Decoding", "decode_column", "decoder_of"]

Decode = Callable[[bytes], Any]

NO_VALUE: Final = "no value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Settings for decoding values; pickled for the workers.

    Attributes:
        format: "json" or "avro".
        schema: Spark's schema in JSON, or an Avro schema.
        zone: the name of the time zone for text without one.
        timestamp_unit: the unit of numeric timestamps in JSON, a key of
            `timestamps.UNITS`; None if they are invalid.
        rounds: whether to round numbers and timestamps that have too many digits.
        framing: the framing to remove before decoding, or None.
    """

    format: str
    schema: str
    zone: str = "UTC"
    timestamp_unit: str | None = None
    rounds: bool = False
    framing: ConfluentFraming | None = None


def decode_column(decoding: Decoding, values: Any) -> Any:
    """Return a struct array of `row` and `reason` for a binary array of values."""
    decode, arrow = decoder_of(decoding)
    rows: list[Any] = []
    reasons: list[str | None] = []
    for value in values.to_pylist():
        try:
            if value is None:
                raise InvalidValueError(NO_VALUE)
            rows.append(decode(value))
            reasons.append(None)
        except InvalidValueError as error:
            rows.append(None)
            reasons.append(str(error))
    return pa.StructArray.from_arrays(
        [pa.array(rows, arrow), pa.array(reasons, pa.string())], ["row", "reason"]
    )


@lru_cache(maxsize=8)
def decoder_of(decoding: Decoding) -> tuple[Decode, Any]:
    """Return the function that decodes one value, and the Arrow type of its rows.

    Raises:
        ConfigurationError: the schema cannot be read, or fastavro is not installed.
    """
    decode, column = _json(decoding) if decoding.format == "json" else _avro(decoding)
    framing = decoding.framing
    if framing is None:
        return decode, column.arrow
    return lambda value: decode(framing.remove(value)), column.arrow


def _json(decoding: Decoding) -> tuple[Decode, Column]:
    unit = decoding.timestamp_unit
    timestamps = Timestamps(
        zone_of(decoding.zone), None if unit is None else UNITS[unit]
    )
    schema = spark.StructType.fromJson(json.loads(decoding.schema))
    column = row_of(schema, Conversion(timestamps, decoding.rounds))
    return JsonDecoder(column.convert).decode, column


def _avro(decoding: Decoding) -> tuple[Decode, Column]:
    schema = read_schema(decoding.schema)
    # Not at the top: JSON is decoded without fastavro, which is an optional extra.
    from sharecons.spark.pipeline.avro_decoder import AvroDecoder

    return AvroDecoder(schema).decode, schema.column
