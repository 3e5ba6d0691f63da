"""Converts decoded JSON and Avro values to values of Spark's types.

A converter takes one Python value and returns one that Arrow stores unchanged. It
raises `InvalidValueError` if the type cannot store the value. Nothing is truncated or
replaced by null, and nothing is rounded unless `Conversion` requests it.

Only Spark's classes of types are used here, and no Spark session.
"""

import base64
import binascii
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isinf
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as spark

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.errors import InvalidValueError
from sharecons.spark.pipeline.timestamps import Timestamps

__all__ = [
    "Column",
    "Conversion",
    "Convert",
    "array_of",
    "column_of",
    "decimal_of",
    "map_of",
    "row_of",
    "struct_of",
]

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Conversion:
    """Settings for values that do not match their column exactly.

    Attributes:
        timestamps: parses timestamps; has the unit of numeric ones.
        rounds: whether to round numbers that have more digits than their column;
            otherwise they are invalid.
    """

    timestamps: Timestamps
    rounds: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """The converter for values of one type, and the Arrow type of its results."""

    convert: Convert
    arrow: Any


def row_of(fields: spark.StructType, conversion: Conversion) -> Column:
    """Return the converter of an object with these fields.

    Raises:
        ConfigurationError: a field has a type that cannot be read.
    """
    return _struct(fields, conversion, "")


def column_of(kind: spark.DataType, conversion: Conversion, path: str) -> Column:
    """Return the converter of one type; `path` names the column in messages.

    Raises:
        ConfigurationError: the type cannot be read.
    """
    if isinstance(kind, spark.StructType):
        return _struct(kind, conversion, f"{path}.")
    if isinstance(kind, spark.ArrayType):
        return _array(kind, conversion, path)
    if isinstance(kind, spark.MapType):
        return _map(kind, conversion, path)
    for known, make in _SCALARS.items():
        if isinstance(kind, known):
            return make(kind, conversion)
    raise ConfigurationError(
        f"column {path}: the pipeline cannot read {kind.simpleString().upper()}; it "
        "reads BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, "
        "STRING, VARCHAR, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY, MAP and STRUCT"
    )


# Types that hold others.


def _struct(kind: spark.StructType, conversion: Conversion, prefix: str) -> Column:
    if not kind.fields:
        raise ConfigurationError(
            f"column {prefix.rstrip('.')}: a STRUCT needs at least one field"
        )
    return struct_of(
        [
            (f.name, column_of(f.dataType, conversion, prefix + f.name), f.nullable)
            for f in kind
        ]
    )


def _array(kind: spark.ArrayType, conversion: Conversion, path: str) -> Column:
    return array_of(column_of(kind.elementType, conversion, f"{path}[]"))


def _map(kind: spark.MapType, conversion: Conversion, path: str) -> Column:
    if not isinstance(kind.keyType, spark.StringType):
        raise ConfigurationError(f"column {path}: the keys of a MAP must be STRING")
    return map_of(column_of(kind.valueType, conversion, f"{path}{{}}"))


def struct_of(fields: Sequence[tuple[str, Column, bool]]) -> Column:
    """Return the column of objects with these fields: name, column, nullable."""
    converts = [(name, column.convert, nullable) for name, column, nullable in fields]

    def convert(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise InvalidValueError(f"{_named(value)}, expected an object")
        row: dict[str, Any] = {}
        for name, convert_field, nullable in converts:
            item = value.get(name)
            if item is not None:
                try:
                    row[name] = convert_field(item)
                except InvalidValueError as error:
                    raise error.within(name) from None
            elif not nullable:
                what = "null" if name in value else "missing"
                raise InvalidValueError(what).within(name)
        return row

    return Column(convert, pa.struct([(name, col.arrow) for name, col, _ in fields]))


def array_of(element: Column) -> Column:
    """Return the column of arrays; elements can be null."""
    convert_element = element.convert

    def convert(value: Any) -> list[Any]:
        if type(value) is not list:
            raise InvalidValueError(f"{_named(value)}, expected an array")
        try:
            return [None if each is None else convert_element(each) for each in value]
        except InvalidValueError as error:
            raise error.within("[]") from None

    return Column(convert, pa.list_(element.arrow))


def map_of(item: Column) -> Column:
    """Return the column of objects with any keys; their values can be null."""
    convert_item = item.convert

    def convert(value: Any) -> list[tuple[str, Any]]:
        if type(value) is not dict:
            raise InvalidValueError(f"{_named(value)}, expected an object")
        try:
            return [
                (_text(key), None if each is None else convert_item(each))
                for key, each in value.items()
            ]
        except InvalidValueError as error:
            raise error.within("{}") from None

    return Column(convert, pa.map_(pa.string(), item.arrow))


# Single values.


def _text(value: Any) -> str:
    if type(value) is not str:
        raise InvalidValueError(f"{_named(value)}, expected a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidValueError("half of a surrogate pair") from None
    return value


def _string(kind: spark.DataType, _: Conversion) -> Column:
    return Column(_text, pa.string())


def _varchar(kind: spark.VarcharType, _: Conversion) -> Column:
    length = kind.length

    def convert(value: Any) -> str:
        text = _text(value)
        if len(text) > length:
            raise InvalidValueError(f"longer than VARCHAR({length})")
        return text

    return Column(convert, pa.string())


def _binary(kind: spark.DataType, _: Conversion) -> Column:
    def convert(value: Any) -> bytes:
        if type(value) is bytes:
            return value
        try:
            return base64.b64decode(_text(value), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidValueError("not Base64") from None

    return Column(convert, pa.binary())


def _boolean(kind: spark.DataType, _: Conversion) -> Column:
    def convert(value: Any) -> bool:
        if type(value) is not bool:
            raise InvalidValueError(f"{_named(value)}, expected true or false")
        return value

    return Column(convert, pa.bool_())


def _integer(bits: int, arrow: Any) -> Callable[[spark.DataType, Conversion], Column]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def make(kind: spark.DataType, _: Conversion) -> Column:
        name = kind.simpleString().upper()

        def convert(value: Any) -> int:
            if type(value) is not int:
                raise InvalidValueError(f"{_named(value)}, expected an integer")
            if not low <= value <= high:
                raise InvalidValueError(f"out of range of {name}")
            return value

        return Column(convert, arrow)

    return make


def _double(kind: spark.DataType, conversion: Conversion) -> Column:
    return Column(_floating("DOUBLE", float, conversion.rounds), pa.float64())


def _float(kind: spark.DataType, conversion: Conversion) -> Column:
    single = struct.Struct("<f")

    def narrow(value: Any) -> float:
        result: float = single.unpack(single.pack(value))[0]
        return result

    return Column(_floating("FLOAT", narrow, conversion.rounds), pa.float32())


def _floating(name: str, narrow: Callable[[Any], float], rounds: bool) -> Convert:
    """Return a converter to a binary fraction.

    Each decimal fraction is stored as the nearest binary one, which is what the type is
    for. Integers are expected to stay what they are.
    """

    def convert(value: Any) -> float:
        if isinstance(value, float):
            return value  # Avro's, which has NaN and infinities
        kind = type(value)
        if kind is not int and kind is not Decimal:
            raise InvalidValueError(f"{_named(value)}, expected a number")
        try:
            result = narrow(value)
        except OverflowError:
            raise InvalidValueError(f"out of range of {name}") from None
        if isinf(result) or (result == 0 and value != 0):
            raise InvalidValueError(f"out of range of {name}")
        if kind is int and result != value and not rounds:
            raise InvalidValueError(f"an integer with more digits than {name} holds")
        return result

    return convert


_DECIMAL: Final = re.compile(r"[+-]?\d{1,80}(?:\.\d{0,80})?", re.ASCII)
_WIDE: Final = Context(prec=100, rounding=ROUND_HALF_UP)


def _decimal(kind: spark.DecimalType, conversion: Conversion) -> Column:
    fit = decimal_of(kind.precision, kind.scale, rounds=conversion.rounds)
    arrow = pa.decimal128(kind.precision, kind.scale)
    return Column(lambda value: fit(_number(value)), arrow)


def decimal_of(precision: int, scale: int, *, rounds: bool) -> Convert:
    """Return a converter of decimals to DECIMAL(precision, scale)."""
    name = f"DECIMAL({precision},{scale})"
    unit, whole = Decimal(1).scaleb(-scale), precision - scale

    def convert(number: Decimal) -> Decimal:
        # Before any arithmetic: the exponent can be huge.
        if number and number.adjusted() >= whole:
            raise InvalidValueError(f"out of range of {name}")
        rounded = number.quantize(unit, context=_WIDE) if number else Decimal(0)
        if rounded != number and not rounds:
            raise InvalidValueError(f"more than {scale} decimal places ({name})")
        if rounded and rounded.adjusted() >= whole:
            raise InvalidValueError(f"out of range of {name}")
        return rounded

    return convert


def _number(value: Any) -> Decimal:
    """Return a JSON number, or one in a string, as JSON has no decimals of its own."""
    if type(value) is Decimal:
        return value
    if type(value) is int:
        return Decimal(value)
    if type(value) is str and _DECIMAL.fullmatch(value):
        return Decimal(value)
    raise InvalidValueError(f"{_named(value)}, expected a number")


_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _date(kind: spark.DataType, _: Conversion) -> Column:
    def convert(value: Any) -> date:
        if type(value) is date:
            return value
        if type(value) is not str:
            raise InvalidValueError(f"{_named(value)}, expected a date (2026-01-31)")
        if not _DATE.fullmatch(value):
            raise InvalidValueError("not a date (2026-01-31)")
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise InvalidValueError("no such date") from None

    return Column(convert, pa.date32())


def _timestamp(kind: spark.DataType, conversion: Conversion) -> Column:
    read, rounds = conversion.timestamps.instant, conversion.rounds
    return Column(lambda value: read(value, rounds), pa.timestamp("us", tz="UTC"))


def _timestamp_ntz(kind: spark.DataType, conversion: Conversion) -> Column:
    read, rounds = conversion.timestamps.local, conversion.rounds
    return Column(lambda value: read(value, rounds), pa.timestamp("us"))


_NAMES: Final[Mapping[type, str]] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    Decimal: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
    bytes: "bytes",
}


def _named(value: Any) -> str:
    """Return what JSON calls a value of this type."""
    return _NAMES.get(type(value), type(value).__name__)


_SCALARS: Final[Mapping[type, Callable[[Any, Conversion], Column]]] = {
    spark.VarcharType: _varchar,
    spark.StringType: _string,
    spark.BinaryType: _binary,
    spark.BooleanType: _boolean,
    spark.ByteType: _integer(8, pa.int8()),
    spark.ShortType: _integer(16, pa.int16()),
    spark.IntegerType: _integer(32, pa.int32()),
    spark.LongType: _integer(64, pa.int64()),
    spark.DoubleType: _double,
    spark.FloatType: _float,
    spark.DecimalType: _decimal,
    spark.DateType: _date,
    spark.TimestampType: _timestamp,
    spark.TimestampNTZType: _timestamp_ntz,
}
