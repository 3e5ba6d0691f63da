"""Unusual values are converted as docs/spark-pipeline.md documents."""

import json
import re
from datetime import datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")
pytest.importorskip("fastavro", reason="needs sharecons[avro]")

import pyarrow as pa
from pyspark.sql import types

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.decoding import Decoding, decode_column, decoder_of
from sharecons.spark.pipeline.framing import ConfluentFraming
from sharecons.spark.pipeline.settings import parse_arguments

PAGE = (Path(__file__).parents[2] / "docs" / "spark-pipeline.md").read_text()
SECTION = PAGE.partition("## Unusual values")[2]

SCHEMA = types.StructType(
    [
        types.StructField("id", types.LongType(), False),
        types.StructField("name", types.StringType()),
        types.StructField("amount", types.DecimalType(5, 2)),
        types.StructField("price", types.DoubleType()),
        types.StructField("at", types.TimestampType()),
        types.StructField("born", types.DateType()),
        types.StructField("ok", types.BooleanType()),
        types.StructField("data", types.BinaryType()),
        types.StructField(
            "address",
            types.StructType([types.StructField("city", types.StringType(), False)]),
        ),
        types.StructField("tags", types.ArrayType(types.StringType())),
        types.StructField(
            "counts", types.MapType(types.StringType(), types.IntegerType())
        ),
    ]
)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "country", "type": ["null", "string"]},
        ],
    }
)


def table(heading):
    """Return the rows of the table with this header, as lists of cells."""
    _, _, after = SECTION.partition(heading)
    lines = after.splitlines()[2:]
    count = next((n for n, line in enumerate(lines) if line[:1] != "|"), len(lines))
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[:count]]


def value_of(cell, encoded):
    if cell == "*none*":
        return None
    return b"" if cell == "*empty*" else encoded(cell.strip("`"))


def json_bytes(text):
    parts = re.split(r"\\x([0-9a-f]{2})", text)
    return b"".join(
        bytes([int(part, 16)]) if n % 2 else part.encode()
        for n, part in enumerate(parts)
    )


def decoded(decoding, value):
    """Return the row and the reason, of which one is None."""
    column = decode_column(decoding, pa.array([value], pa.binary()))
    found = column[0].as_py()
    assert (found["row"] is None) != (found["reason"] is None)
    return found["row"], found["reason"]


def check(decoding, value, expected):
    row, reason = decoded(decoding, value)
    if match := re.match(r"`(\w+)`: `([^`]*)`", expected):
        assert reason is None
        found = row[match[1]]
        if isinstance(found, datetime):
            found = found.replace(tzinfo=None)
        assert str(found) == match[2]
    else:
        assert reason == expected


def decoding_of(**more):
    return Decoding(**{"format": "json", "schema": SCHEMA.json()} | more)


# The tables of docs/spark-pipeline.md.


def test_page_has_all_tables():
    assert len(table("| value | becomes |")) == 44
    assert len(table("| value | with | becomes |")) == 11


@pytest.mark.parametrize(("cell", "expected"), table("| value | becomes |"))
def test_json_value_is_converted_as_documented(cell, expected):
    check(decoding_of(), value_of(cell, json_bytes), expected)


@pytest.mark.parametrize(
    ("cell", "options", "expected"), table("| value | with | becomes |")
)
def test_avro_value_is_converted_as_documented(cell, options, expected):
    needed = ["--topic", "t", "--group", "g", "--schema", AVRO, "--into", "/x"]
    settings = parse_arguments([*needed, *options.strip("`").split()])
    decoding = Decoding(format="avro", schema=AVRO, framing=settings.framing)

    check(decoding, value_of(cell, bytes.fromhex), expected)


# JSON.


@pytest.mark.parametrize(
    ("column", "sent", "stored"),
    [
        ("amount", "1.239", Decimal("1.24")),
        ("amount", "-1.235", Decimal("-1.24")),
        ("price", "9007199254740993", 9007199254740992.0),
        ("at", '"2026-01-31T12:00:00.9999995Z"', datetime(2026, 1, 31, 12, 0, 1)),
    ],
)
def test_number_with_too_many_digits_is_rounded_on_request(column, sent, stored):
    value = f'{{"id": 1, "{column}": {sent}}}'.encode()

    row, _ = decoded(decoding_of(rounds=True), value)
    found = row[column]
    assert (found.replace(tzinfo=None) if column == "at" else found) == stored
    assert decoded(decoding_of(), value)[0] is None


def test_rounding_does_not_accept_a_number_out_of_range():
    _, reason = decoded(decoding_of(rounds=True), b'{"id": 1, "amount": 999.995}')

    assert reason == "amount: out of range of DECIMAL(5,2)"


@pytest.mark.parametrize(
    ("unit", "number"),
    [("s", "1700000000"), ("ms", "1700000000000"), ("us", "1700000000000000")],
)
def test_numeric_timestamp_is_read_in_its_unit(unit, number):
    value = f'{{"id": 1, "at": {number}}}'.encode()
    row, _ = decoded(decoding_of(timestamp_unit=unit), value)

    assert row["at"].timestamp() == 1_700_000_000


def test_numeric_timestamp_in_the_wrong_unit_is_not_a_row():
    value = b'{"id": 1, "at": 1700000000000}'

    _, reason = decoded(decoding_of(timestamp_unit="s"), value)
    assert reason == "at: out of range: timestamps end with the year 9999"


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31 12:00:00"),
        ("2026-01-31T12:00:00+02:00", "2026-01-31 10:00:00"),
        ("2026-01-31 12:00:00.5-0130", "2026-01-31 13:30:00.500000"),
        ("2026-01-31T12:00:00", "2026-01-31 11:00:00"),
        ("2026-07-31T12:00:00", "2026-07-31 10:00:00"),
        ("2026-01-31", "2026-01-30 23:00:00"),
    ],
)
def test_timestamp_without_a_zone_is_in_the_session_time_zone(text, utc):
    value = json.dumps({"id": 1, "at": text}).encode()
    row, _ = decoded(decoding_of(zone="Europe/Oslo"), value)

    assert str(row["at"].replace(tzinfo=None)) == utc


@pytest.mark.parametrize(
    "text",
    ["2026-01-31T24:00:00Z", "2026-13-01", "2026-01-31T12:00:60Z", "0000-01-01"],
)
def test_time_that_does_not_exist_is_not_a_row(text):
    value = json.dumps({"id": 1, "at": text}).encode()

    assert decoded(decoding_of(), value)[1] == "at: no such time"


@pytest.mark.parametrize("zone", ["UTC", "Z", "GMT+1", "+05:30", "UTC-08:00"])
def test_zones_that_spark_accepts_are_known(zone):
    assert decoded(decoding_of(zone=zone), b'{"id": 1}')[1] is None


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 100_000,
        b'{"id": ' + b"1" * 5000 + b"}",
        b'{"id": 1, "amount": 1e999999999999999999999}',
        b'{"id": 1, "amount": 1e999999999}',
        b'{"id": 1, "at": 1e999999999}',
    ],
)
def test_maliciously_expensive_value_is_not_a_row(value):
    assert decoded(decoding_of(timestamp_unit="s"), value)[0] is None


def test_reason_escapes_an_unprintable_duplicate_key():
    key = '"\\udcff' + "x" * 100 + '"'
    value = f'{{"id": 1, {key}: 1, {key}: 2}}'.encode()

    _, reason = decoded(decoding_of(), value)
    assert reason == f"the key ?{'x' * 59}… occurs more than once"


def test_integer_out_of_range_of_its_type_is_not_a_row():
    small = types.StructType([types.StructField("n", types.ByteType())])
    decoding = decoding_of(schema=small.json())

    assert decoded(decoding, b'{"n": -128}')[0] == {"n": -128}
    assert decoded(decoding, b'{"n": 128}')[1] == "n: out of range of TINYINT"


def test_timestamp_ntz_with_a_zone_is_not_a_row():
    local = types.StructType([types.StructField("at", types.TimestampNTZType())])
    decoding = decoding_of(schema=local.json())

    row, _ = decoded(decoding, b'{"at": "2026-01-31T12:00:00"}')
    assert row["at"] == datetime(2026, 1, 31, 12)
    _, reason = decoded(decoding, b'{"at": "2026-01-31T12:00:00Z"}')
    assert reason == "at: has a time zone, which TIMESTAMP_NTZ cannot hold"


def test_reason_has_the_path_within_arrays_and_maps():
    inner = types.StructType([types.StructField("n", types.LongType(), False)])
    kind = types.ArrayType(types.MapType(types.StringType(), inner))
    schema = types.StructType([types.StructField("a", kind)])

    _, reason = decoded(decoding_of(schema=schema.json()), b'{"a": [{"x": {}}]}')
    assert reason == "a[]{}.n: missing"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (types.DayTimeIntervalType(), "column x: the pipeline cannot read INTERVAL"),
        (types.MapType(types.LongType(), types.LongType()), "keys of a MAP"),
        (types.StructType([]), "at least one field"),
    ],
)
def test_unsupported_type_is_an_error_at_the_start(kind, words):
    schema = types.StructType([types.StructField("x", kind)])

    with pytest.raises(ConfigurationError, match=words):
        decoder_of(decoding_of(schema=schema.json()))


# Avro.


def avro(*fields, **more):
    schema = {"type": "record", "name": "R", "namespace": "n", "fields": list(fields)}
    return Decoding(format="avro", schema=json.dumps(schema), **more)


def field(kind, name="x"):
    return {"name": name, "type": kind}


def encoded(decoding, row):
    import fastavro

    data = BytesIO()
    fastavro.schemaless_writer(data, json.loads(decoding.schema), row)
    return data.getvalue()


POINT = {
    "type": "record",
    "name": "P",
    "fields": [field("int", "a"), field("int", "b")],
}


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("boolean", True, True),
        ("int", -5, -5),
        ("long", 1 << 62, 1 << 62),
        ("float", 0.5, 0.5),
        ("double", float("inf"), float("inf")),
        ("bytes", b"\0\xff", b"\0\xff"),
        ("string", "ø", "ø"),
        (["null", "long"], None, None),
        (["int", "null", "long"], 1 << 40, 1 << 40),
        (["float", "double"], 0.25, 0.25),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        ({"type": "array", "items": ["null", "int"]}, [1, None], [1, None]),
        ({"type": "map", "values": "string"}, {"k": "v"}, [("k", "v")]),
        (POINT, {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ({"type": "string", "logicalType": "uuid"}, "u", "u"),
        ({"type": "int", "logicalType": "time-millis"}, 5, 5),
    ],
)
def test_avro_values_of_all_types_are_unchanged(kind, value, stored):
    decoding = avro(field(kind))
    plain = json.loads(decoding.schema.replace('"logicalType"', '"ignored"'))
    data = encoded(avro(*plain["fields"]), {"x": value})

    assert decoded(decoding, data) == ({"x": stored}, None)


@pytest.mark.parametrize(
    ("logical", "number", "stored"),
    [
        ("timestamp-millis", 1_700_000_000_123, "2023-11-14 22:13:20.123000+00:00"),
        ("timestamp-micros", 1_700_000_000_000_123, "2023-11-14 22:13:20.000123+00:00"),
        ("local-timestamp-millis", 0, "1970-01-01 00:00:00"),
    ],
)
def test_avro_timestamps_are_converted_to_microseconds(logical, number, stored):
    data = encoded(avro(field("long")), {"x": number})
    decoding = avro(field({"type": "long", "logicalType": logical}))

    assert str(decoded(decoding, data)[0]["x"]) == stored


@pytest.mark.parametrize(
    ("kind", "number", "words"),
    [
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            1 << 60,
            "x: out of range",
        ),
        ({"type": "int", "logicalType": "date"}, 1 << 30, "x: out of range"),
    ],
)
def test_avro_times_out_of_sparks_range_are_not_rows(kind, number, words):
    data = encoded(avro(field(kind["type"])), {"x": number})

    assert words in decoded(avro(field(kind)), data)[1]


def test_avro_decimals_have_all_digits():
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    decoding, plain = avro(field(kind)), avro(field("bytes"))

    def read(unscaled):
        number = unscaled.to_bytes(8, "big", signed=True)
        return decoded(decoding, encoded(plain, {"x": number}))

    assert read(-12345)[0] == {"x": Decimal("-123.45")}
    assert read(0)[0] == {"x": Decimal("0.00")}
    assert read(123456)[1] == "x: out of range of DECIMAL(5,2)"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x01"),
        ("boolean", b"\x02"),
        ("long", b"\x82\x00"),
        ("int", b"\x80\x80\x80\x80\x20"),
    ],
)
def test_avro_bytes_that_no_writer_produces_are_not_a_row(kind, data):
    assert decoded(avro(field(kind)), data)[0] is None


def test_avro_named_types_are_resolved():
    decoding = avro(field(POINT, "x"), field("P", "y"), field("n.P", "z"))
    point = {"a": 1, "b": 2}
    row = {"x": point, "y": point, "z": point}

    assert decoded(decoding, encoded(decoding, row)) == (row, None)


def test_unframed_avro_that_begins_with_zero_is_a_row():
    decoding = avro(field("long", "a"), field("string", "b"))
    row = {"a": 0, "b": "some text"}

    assert decoded(decoding, encoded(decoding, row)) == (row, None)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("not json", "not an Avro schema"),
        ('"long"', "must be a record"),
        ([field("null")], "null alone"),
        ([field(["int", "string"])], "union of several types"),
        ([field("Unknown")], "'n.Unknown' is not an Avro type"),
        ([field(["null", "R"])], "contains itself"),
        ([field({"type": "record", "name": "E", "fields": []})], "without fields"),
        ([field({"type": "fixed", "name": "F", "size": 0})], "no bytes"),
        ([field("int"), field("int")], "x: the field is defined twice"),
        ([field({"type": "array"})], "no 'items'"),
        ([field({"type": {"type": "int"}})], "must be a name, an object or a list"),
        (
            [field({"type": "enum", "name": "E", "symbols": ["A", "A"]})],
            "not an Avro schema: All symbols in an enum must be unique",
        ),
        ([{"name": "x"}], "not an Avro schema: Record field 'x' is missing 'type'"),
        (
            [
                field(
                    {
                        "type": "bytes",
                        "logicalType": "decimal",
                        "precision": 50,
                        "scale": 0,
                    }
                )
            ],
            "out of range of Spark's DECIMAL",
        ),
    ],
)
def test_unsupported_avro_schema_is_an_error_at_the_start(schema, words):
    if not isinstance(schema, str):
        schema = avro(*schema).schema

    with pytest.raises(ConfigurationError, match=words):
        decoder_of(Decoding(format="avro", schema=schema))


def test_framed_json_is_decoded():
    framed = decoding_of(framing=ConfluentFraming())
    value = b"\0\0\0\0\x07" + b'{"id": 1}'

    assert decoded(framed, value)[0]["id"] == 1
    assert decoded(framed, b'{"id": 1}')[1] == "no Confluent framing"
