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

__all__ = ["AvroField", "read_schema"]

MAX_PRECISION: Final = 38
"""The maximum precision of Spark's decimals."""

_PRIMITIVES: Final[Mapping[str, spark.DataType]] = {
    "boolean": spark.BooleanType(),
    "int": spark.IntegerType(),
    "long": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "bytes": spark.BinaryType(),
    "string": spark.StringType(),
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
        column: converts the values that fastavro decodes with `plain`.
        nullable: whether null is one of its types.
        plain: the schema without logical types.
    """

    kind: spark.DataType
    column: Column
    nullable: bool
    plain: Any


def read_schema(text: str) -> AvroField:
    """Read a schema in JSON; it must be a record.

    Raises:
        ConfigurationError: it is not JSON, or cannot be a row in Spark.
    """
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"--schema is not an Avro schema: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ConfigurationError("--schema: the Avro schema must be a record")
    return _Reader().read(schema, "")


class _Reader:
    """Reads one schema; keeps the named types that it has read."""

    def __init__(self) -> None:
        # None: a record whose fields are being read.
        self._named: dict[str, AvroField | None] = {}

    def read(self, schema: Any, path: str, space: str = "") -> AvroField:
        if isinstance(schema, list):
            return self._union(schema, path, space)
        if isinstance(schema, str):
            return self._by_name(schema, path, space)
        if not isinstance(schema, dict) or "type" not in schema:
            raise _schema_error(path, f"{json.dumps(schema)} is not an Avro type")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.read(kind, path, space)
        if logical := _LOGICAL.get((schema.get("logicalType"), kind)):
            return self._remember(schema, space, logical(schema, path))
        if kind == "array":
            return self._array(schema, path, space)
        if kind == "map":
            return self._map(schema, path, space)
        if kind in ("record", "error"):
            return self._record(schema, path, space)
        if kind in ("enum", "fixed"):
            return self._remember(schema, space, _named_type(schema, path))
        return self._by_name(kind, path, space)

    def _by_name(self, name: str, path: str, space: str) -> AvroField:
        if name in _PRIMITIVES:
            spark_type = _PRIMITIVES[name]
            column = column_of(spark_type, _CONVERSION, path)
            return AvroField(spark_type, column, False, name)
        if name == "null":
            raise _schema_error(path, "Spark has no type for null alone")
        full = name if "." in name or not space else f"{space}.{name}"
        if full not in self._named:
            raise _schema_error(path, f"{name!r} is not an Avro type")
        found = self._named[full]
        if found is None:
            raise _schema_error(path, f"the record {name} contains itself")
        return AvroField(found.kind, found.column, found.nullable, full)

    def _union(self, schema: Sequence[Any], path: str, space: str) -> AvroField:
        branches = [branch for branch in schema if branch != "null"]
        nullable = len(branches) < len(schema)
        if not branches:
            raise _schema_error(path, "Spark has no type for null alone")
        fields = [self.read(branch, path, space) for branch in branches]
        plain = iter(fields)
        schemas = ["null" if each == "null" else next(plain).plain for each in schema]
        kind = self._common(fields, path)
        return AvroField(kind.kind, kind.column, nullable or kind.nullable, schemas)

    def _common(self, fields: Sequence[AvroField], path: str) -> AvroField:
        if len(fields) == 1:
            return fields[0]
        names = frozenset(str(field.plain) for field in fields)
        if names not in _WIDER:
            raise _schema_error(path, "a union of several types has no type in Spark")
        return self._by_name(_WIDER[names], path, "")

    def _array(self, schema: Any, path: str, space: str) -> AvroField:
        element = self.read(schema.get("items"), f"{path}[]", space)
        kind = spark.ArrayType(element.kind, True)
        plain = {"type": "array", "items": element.plain}
        return AvroField(kind, array_of(element.column), False, plain)

    def _map(self, schema: Any, path: str, space: str) -> AvroField:
        item = self.read(schema.get("values"), f"{path}{{}}", space)
        kind = spark.MapType(spark.StringType(), item.kind, True)
        plain = {"type": "map", "values": item.plain}
        return AvroField(kind, map_of(item.column), False, plain)

    def _record(self, schema: Any, path: str, space: str) -> AvroField:
        name, space = _full_name(schema, path, space)
        self._named[name] = None
        prefix = f"{path}." if path else ""
        fields: dict[str, AvroField] = {}
        for each in schema.get("fields", ()):
            at = f"{prefix}{each.get('name')}"
            if each.get("name") in fields:
                raise _schema_error(at, "the field is defined twice")
            fields[str(each.get("name"))] = self.read(each.get("type"), at, space)
        if not fields:
            raise _schema_error(path, "Spark has no type for a record without fields")
        found = _record_of(name, fields)
        self._named[name] = found
        return found

    def _remember(self, schema: Any, space: str, found: AvroField) -> AvroField:
        if "name" not in schema:
            return found
        name, _ = _full_name(schema, "", space)
        plain = {**found.plain, "name": name}
        self._named[name] = AvroField(found.kind, found.column, found.nullable, plain)
        return AvroField(found.kind, found.column, found.nullable, plain)


def _record_of(name: str, fields: Mapping[str, AvroField]) -> AvroField:
    kind = spark.StructType(
        [spark.StructField(n, f.kind, f.nullable) for n, f in fields.items()]
    )
    column = struct_of([(n, f.column, f.nullable) for n, f in fields.items()])
    plain = [{"name": n, "type": f.plain} for n, f in fields.items()]
    schema = {"type": "record", "name": name, "fields": plain}
    return AvroField(kind, column, False, schema)


def _full_name(schema: Any, path: str, space: str) -> tuple[str, str]:
    """Return a type's name with its namespace, and the namespace of nested types."""
    name = schema.get("name")
    if not isinstance(name, str) or not name:
        raise _schema_error(path, f"a {schema['type']} without a name")
    if "." not in name:
        space = schema.get("namespace", space)
        return (f"{space}.{name}" if space else name), space
    return name, name.rpartition(".")[0]


def _named_type(schema: Any, path: str) -> AvroField:
    if schema["type"] == "enum":
        kind: spark.DataType = spark.StringType()
        plain = {"type": "enum", "symbols": schema.get("symbols")}
    else:
        kind = spark.BinaryType()
        plain = {"type": "fixed", "size": schema.get("size")}
        if not schema.get("size"):
            raise _schema_error(path, "a fixed of no bytes has no type in Spark")
    return AvroField(kind, column_of(kind, _CONVERSION, path), False, plain)


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
    return AvroField(kind, column, False, _plain(schema))


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

    return AvroField(spark.DateType(), Column(convert, pa.date32()), False, "int")


def _timestamp(micros: int, zone: Any) -> Callable[[Any, str], AvroField]:
    kind = spark.TimestampType() if zone else spark.TimestampNTZType()

    def make(schema: Any, path: str) -> AvroField:
        def convert(value: int) -> int:
            return micros_in_range(value * micros)

        column = Column(convert, pa.timestamp("us", tz=zone))
        return AvroField(kind, column, False, "long")

    return make


def _plain(schema: Any) -> Any:
    if schema["type"] == "bytes":
        return "bytes"
    return {"type": "fixed", "size": schema.get("size")}


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
