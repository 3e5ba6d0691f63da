"""Spark's types for an Avro schema, with the mapping of Spark's own Avro source.

Logical types are removed from the schema for fastavro, and converted here: fastavro
rounds a decimal to its precision, and cannot decode dates beyond Python's.

Spark has no type for `null` alone, for recursive records, and for unions of several
types (except int with long, and float with double). Such schemas are rejected.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as spark

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.converters import (
    Column,
    Conversion,
    array_of,
    column_of,
    decimal_of,
    map_of,
    struct_of,
)
from sharecons.spark.pipeline.errors import InvalidValueError
from sharecons.spark.pipeline.timestamps import Timestamps, micros_in_range

__all__ = ["AvroSchema", "read_schema"]

MAX_PRECISION: Final = 38
"""The maximum precision of Spark's decimals."""

_SCALARS: Final[Mapping[str, spark.DataType]] = {
    "boolean": spark.BooleanType(),
    "int": spark.IntegerType(),
    "long": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "bytes": spark.BinaryType(),
    "string": spark.StringType(),
    "enum": spark.StringType(),
    "fixed": spark.BinaryType(),
}
_WIDER: Final[Mapping[frozenset[str], str]] = {
    frozenset(("int", "long")): "long",
    frozenset(("float", "double")): "double",
}
_CONVERSION: Final = Conversion(timestamps=Timestamps())


@dataclass(frozen=True, slots=True)
class AvroField:
    """One part of an Avro schema.

    Attributes:
        kind: its Spark type.
        column: converts the values that fastavro decodes without logical types.
        nullable: whether null is one of its types.
    """

    kind: spark.DataType
    column: Column
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """The schema of a record.

    Attributes:
        kind: its Spark type.
        column: converts the records that fastavro decodes with `plain`.
        plain: the schema without logical types, for fastavro.
    """

    kind: spark.StructType
    column: Column
    plain: Any


def read_schema(text: str) -> AvroSchema:
    """Read a schema in JSON; it must be a record.

    Raises:
        ConfigurationError: it is not JSON, or cannot be a row in Spark, or fastavro is
            not installed.
    """
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"--schema is not an Avro schema: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ConfigurationError("--schema: the Avro schema must be a record")
    found = _read(_expanded(schema), "")
    assert isinstance(found.kind, spark.StructType), "a record"
    return AvroSchema(found.kind, found.column, _without_logical_types(schema))


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = ("type", "items", "values", "fields")
    return {
        key: _without_logical_types(value) if key in inner else value
        for key, value in schema.items()
        if key != "logicalType"
    }


def _expanded(schema: Any) -> Any:
    """Return the schema with names of types replaced by their definitions."""
    try:
        from fastavro.schema import (
            SchemaParseException,
            UnknownType,
            expand_schema,
        )
    except ImportError as error:
        raise ConfigurationError(
            f"Avro cannot be decoded: {error}; install sharecons[avro] on the driver "
            "and on every executor"
        ) from error
    try:
        return expand_schema(schema)
    except UnknownType as error:
        raise _schema_error("", f"{error.name!r} is not an Avro type") from error
    except KeyError as error:
        raise _schema_error("", f"a type has no {error}") from error
    except TypeError as error:
        raise _schema_error(
            "", f"a type must be a name, an object or a list ({error})"
        ) from error
    except (SchemaParseException, ValueError) as error:
        raise ConfigurationError(f"--schema is not an Avro schema: {error}") from error


def _read(schema: Any, path: str) -> AvroField:
    if isinstance(schema, list):
        return _union(schema, path)
    if isinstance(schema, str):
        return _by_name(schema, path)
    kind = schema["type"]
    if logical := _LOGICAL.get((schema.get("logicalType"), kind)):
        return logical(schema, path)
    if kind == "array":
        element = _read(schema["items"], f"{path}[]")
        return AvroField(spark.ArrayType(element.kind, True), array_of(element.column))
    if kind == "map":
        item = _read(schema["values"], f"{path}{{}}")
        return AvroField(
            spark.MapType(spark.StringType(), item.kind, True), map_of(item.column)
        )
    if kind in ("record", "error"):
        return _record(schema, path)
    if kind == "fixed" and not schema["size"]:
        raise _schema_error(path, "a fixed of no bytes has no type in Spark")
    return _by_name(kind, path)


def _by_name(name: str, path: str) -> AvroField:
    if name == "null":
        raise _schema_error(path, "Spark has no type for null alone")
    if name not in _SCALARS:
        # Only the names of records within themselves are left after expansion.
        raise _schema_error(path, f"the record {name} contains itself")
    return AvroField(_SCALARS[name], column_of(_SCALARS[name], _CONVERSION, path))


def _union(schema: Sequence[Any], path: str) -> AvroField:
    branches = [branch for branch in schema if branch != "null"]
    if not branches:
        raise _schema_error(path, "Spark has no type for null alone")
    found = [_read(branch, path) for branch in branches]
    if len(found) > 1:
        names = frozenset(str(_name(branch)) for branch in branches)
        if names not in _WIDER:
            raise _schema_error(path, "a union of several types has no type in Spark")
        found = [_by_name(_WIDER[names], path)]
    nullable = len(branches) < len(schema)
    return AvroField(found[0].kind, found[0].column, nullable)


def _name(branch: Any) -> Any:
    return branch["type"] if isinstance(branch, dict) else branch


def _record(schema: Any, path: str) -> AvroField:
    fields: dict[str, AvroField] = {}
    for each in schema["fields"]:
        at = f"{path}.{each['name']}".lstrip(".")
        if not isinstance(each["name"], str):
            raise _schema_error(at, "the name of a field must be a text")
        if each["name"] in fields:
            raise _schema_error(at, "the field is defined twice")
        fields[each["name"]] = _read(each["type"], at)
    if not fields:
        raise _schema_error(path, "Spark has no type for a record without fields")
    kind = spark.StructType(
        [spark.StructField(n, f.kind, f.nullable) for n, f in fields.items()]
    )
    column = struct_of([(n, f.column, f.nullable) for n, f in fields.items()])
    return AvroField(kind, column)


# Logical types.


def _decimal(schema: Any, path: str) -> AvroField:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if (
        not isinstance(precision, int)
        or not isinstance(scale, int)
        or not 0 <= scale <= precision <= MAX_PRECISION
        or precision == 0
    ):
        raise _schema_error(
            path, f"decimal({precision}, {scale}) is out of range of Spark's DECIMAL"
        )
    fit = decimal_of(precision, scale, rounds=False)

    def convert(value: bytes) -> Decimal:
        unscaled = int.from_bytes(value, "big", signed=True)
        sign = int(unscaled < 0)
        number: Decimal = fit(Decimal((sign, _digits(unscaled), -scale)))
        return number

    column = Column(convert, pa.decimal128(precision, scale))
    kind = spark.DecimalType(precision, scale)
    return AvroField(kind, column)


def _digits(number: int) -> tuple[int, ...]:
    # Spark's decimals have 38 digits; Python does not print thousands of them.
    if number.bit_length() > 512:
        raise InvalidValueError("out of range of DECIMAL")
    return tuple(int(digit) for digit in str(abs(number)))


def _date(schema: Any, path: str) -> AvroField:
    first, last = (day.toordinal() - _EPOCH_DAY for day in (date.min, date.max))

    def convert(value: int) -> int:
        if not first <= value <= last:
            raise InvalidValueError("out of range: dates end with the year 9999")
        return value

    return AvroField(spark.DateType(), Column(convert, pa.date32()))


def _timestamp(micros: int, zone: Any) -> Callable[[Any, str], AvroField]:
    kind = spark.TimestampType() if zone else spark.TimestampNTZType()

    def make(schema: Any, path: str) -> AvroField:
        def convert(value: int) -> int:
            return micros_in_range(value * micros)

        return AvroField(kind, Column(convert, pa.timestamp("us", tz=zone)))

    return make


_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()

_LOGICAL: Final[Mapping[tuple[Any, str], Callable[[Any, str], AvroField]]] = {
    ("decimal", "bytes"): _decimal,
    ("decimal", "fixed"): _decimal,
    ("date", "int"): _date,
    ("timestamp-millis", "long"): _timestamp(1000, "UTC"),
    ("timestamp-micros", "long"): _timestamp(1, "UTC"),
    ("local-timestamp-millis", "long"): _timestamp(1000, None),
    ("local-timestamp-micros", "long"): _timestamp(1, None),
}


def _schema_error(path: str, reason: str) -> ConfigurationError:
    where = f"--schema, {path}" if path else "--schema"
    return ConfigurationError(f"{where}: {reason}")
