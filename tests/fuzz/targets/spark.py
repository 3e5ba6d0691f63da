"""Input of the Spark source and its pipeline: ledgers, offsets, checkpoints, commit
files, options, values in JSON and Avro, and Avro schemas.
"""

import contextlib
import json
import zlib
from functools import cache
from io import BytesIO
from typing import Any, Final

import fastavro
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyspark.sql import types

from sharecons.errors import ConfigurationError
from sharecons.protocol.partitions import SharePartition
from sharecons.spark import entries
from sharecons.spark.entries import Identity
from sharecons.spark.errors import LedgerError
from sharecons.spark.history import (
    check_identity,
    entry_name,
    read_history,
    rebuild,
)
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.ledger_options import parse_ledger_option
from sharecons.spark.loads import Load, Loads
from sharecons.spark.options import read_options
from sharecons.spark.pipeline.commits import CommitLog
from sharecons.spark.pipeline.decoding import Decoding, decode_column, decoder_of
from sharecons.spark.pipeline.errors import CommitError
from sharecons.spark.pipeline.framing import ConfluentFraming
from sharecons.spark.pipeline.ledger_range import read_range
from tests.fuzz.drawing import changed, number_texts, short_texts, texts
from tests.fuzz.target import Case, Target
from tests.spark.memory_storage import MemoryStorage

__all__ = ["TARGETS"]

TOPIC_ID: Final = bytes(range(16))
IDENTITY: Final = Identity(ledger_id="l", group_id="billing", member_id="m")


# Ledgers.


def _ledger() -> list[bytes]:
    """Return the entries of a ledger, one of each kind."""
    loads = Loads(
        {"a": Load(start=0, ledger_end=5, spans=((0, 5),), open_since=None,
                   is_complete=True)}
    )  # fmt: skip
    return [
        entries.encode_trimmed(
            "d",
            IDENTITY,
            begin=5,
            first_kept=0,
            topics={"orders": TOPIC_ID},
            redeliverable={SharePartition(TOPIC_ID, 0): [(0, 4)]},
            loads=loads,
        ),
        entries.encode_opened("d", IDENTITY),
        entries.encode_acquired(
            "d", 5, [AcquiredRange("orders", TOPIC_ID, 0, 5, 9, 1)]
        ),
        entries.encode_load("d", "b", position=10, start=5, is_complete=False),
        entries.encode_load("d", "b", position=10, start=None, is_complete=True),
    ]


def _entries() -> SearchStrategy[bytes]:
    """Return entries, mostly with a correct checksum."""
    bodies = st.sampled_from(_ledger()).map(
        lambda data: data.rpartition(b'{"crc32":')[0]
    )
    values = number_texts() | st.sampled_from(
        ("null", "[]", "{}", '"x"', "true", "NaN", "[[[1]]]", "[" * 3000)
    )
    replaced = st.builds(_replace_value, bodies, st.integers(0, 40), values)
    return st.tuples(bodies | replaced | changed(replaced), st.integers(0, 9)).map(
        lambda drawn: drawn[0] if drawn[1] == 9 else _sealed(drawn[0])
    )


def _sealed(body: bytes) -> bytes:
    return body + b'{"crc32":%d}\n' % zlib.crc32(body)


def _replace_value(body: bytes, place: int, value: str) -> bytes:
    """Replace one value in JSON, or the key before it."""
    lines = body.split(b"\n")
    at = place % len(lines)
    parts = lines[at].replace(b",", b"\0,\0").replace(b":", b"\0:\0").split(b"\0")
    parts[place // len(lines) * 2 % len(parts)] = value.encode()
    lines[at] = b"".join(parts)
    return b"\n".join(lines)


def _check_ledger(case: Case) -> None:
    storage = MemoryStorage()
    for number, data in enumerate(case):
        storage.files[entry_name(number)] = data
    with contextlib.suppress(LedgerError):
        history = read_history(storage, "memory")
        check_identity(history, "billing", "memory")
        state = rebuild(history, "memory")
        state.ledger.ranges_between(state.ledger.begin, state.ledger.end)


# Commit files, and offsets in checkpoints.

STATS: Final = {
    "batch": "b", "number": 1, "run": "r", "at": "2026-11-30T00:00:00+00:00", "rows": 1,
    "quarantined": 0, "redelivered": 0, "bytes": 1, "lag": 0, "backlog": 0,
    "latency_p50": 0.1, "latency_p90": 0.1, "latency_p99": 0.1, "seconds": 0.1,
    "reasons": {},
}  # fmt: skip
COMMIT: Final = json.dumps(
    {
        "batch": "b", "number": 1, "query": "q", "staging": "s",
        "files": {"rows": {"a": "b"}}, "stats": STATS, "removed": [], "replaced": [],
        "range": {"ledger": "l", "start": 0, "end": 5},
    }
).encode()  # fmt: skip
OFFSETS: Final = b'v1\n{"batchWatermarkMs":0}\n{"position":5,"ledger":"l"}\n'


class _Files:
    """The files of a checkpoint, in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, name: str) -> bytes | None:
        return self._content

    def url(self, name: str) -> str:
        return f"memory:{name}"


def _stored_json(whole: bytes) -> SearchStrategy[bytes]:
    values = number_texts() | st.sampled_from(
        ("null", "[]", "{}", '"x"', "true", "NaN", "1e999", "[" * 3000)
    )
    replaced = st.builds(_replace_value, st.just(whole), st.integers(0, 99), values)
    return replaced | changed(replaced)


def _check_commit(content: Case) -> None:
    storage = MemoryStorage()
    storage.files["b.json"] = content
    with contextlib.suppress(CommitError):
        CommitLog(storage).find("b")
    for number in (0, 1):
        with contextlib.suppress(CommitError):
            read_range(_Files(content), number)  # type: ignore[arg-type]


# Options.

OPTIONS: Final = (
    "subscribe",
    "subscribePattern",
    "includeHeaders",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "startingPosition",
    "endingPosition",
    "loadId",
    "idleTimeout",
    "batchEnds",
    "kafka.share.auto.offset.reset",
    "kafka.client.id",
    "kafka.fetch.max.bytes",
    "kafka.request.timeout.ms",
    "kafka.fetch.max.wait.ms",
    "kafka.security.protocol",
    "kafka.sasl.jaas.config",
    "ledger.key",
)


def _options() -> SearchStrategy[dict[str, str]]:
    usual = {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.share.group.id": "billing",
        "ledgerLocation": "/nowhere",
        "subscribe": "orders",
    }
    values = texts(
        "10m", "15s", "us", "true", "earliest", "orders,", "(", "[a", '{"l": [5, ',
        "]}", '"x"', "SSL", "SASL_SSL", max_parts=3,
    )  # fmt: skip
    some = st.dictionaries(st.sampled_from(OPTIONS), values, max_size=3)
    return some.map(lambda given: usual | given)


def _check_options(case: Case) -> None:
    for streaming in (True, False):
        with contextlib.suppress(ConfigurationError):
            read_options(case, streaming=streaming)
    for value in case.values():
        with contextlib.suppress(ConfigurationError):
            parse_ledger_option("ledger.key", value)


# Values in JSON.

SCHEMA: Final = types.StructType(
    [
        types.StructField("id", types.LongType(), False),
        types.StructField("small", types.ByteType()),
        types.StructField("name", types.StringType()),
        types.StructField("amount", types.DecimalType(5, 2)),
        types.StructField("price", types.DoubleType()),
        types.StructField("ratio", types.FloatType()),
        types.StructField("at", types.TimestampType()),
        types.StructField("local", types.TimestampNTZType()),
        types.StructField("born", types.DateType()),
        types.StructField("ok", types.BooleanType()),
        types.StructField("data", types.BinaryType()),
        types.StructField(
            "address", types.StructType([types.StructField("city", types.StringType())])
        ),
        types.StructField("tags", types.ArrayType(types.StringType())),
        types.StructField(
            "counts", types.MapType(types.StringType(), types.IntegerType())
        ),
    ]
)
JSON: Final = tuple(
    Decoding(format="json", schema=SCHEMA.json(), timestamp_unit=unit, rounds=rounds)
    for unit, rounds in ((None, False), ("ms", True), ("us", True))
)


def _json_values() -> SearchStrategy[bytes]:
    scalars = (
        st.sampled_from(
            ('"2026-11-21T10:00:00Z"', '"2026-11-21"', '"0001-01-01T00:00:00+23:59"',
             '"9999-12-31T23:59:59.9999999-23:59"', '"AQ=="', "true", "null", "[]", "{}",  # noqa: E501
             '{"city":1}', '["a",null]', '{"a":1}', "1e400", "NaN", '"\\ud800"',
             '"24:00"', '"10000-01-01"', "-0.0", "1e-400", "1E2147483648",
             "1e99999999999999999999")
        )
        | number_texts()
        | short_texts().map(json.dumps)
    )  # fmt: skip
    fields = st.tuples(st.sampled_from(SCHEMA.names), scalars)
    whole = st.lists(fields, max_size=4).map(
        lambda drawn: "{" + ",".join(f'"{n}":{v}' for n, v in drawn) + "}"
    )
    depth = st.sampled_from(("[" * 9000, '{"a":' * 3000, '{"tags":' + "[" * 9000))
    return changed((whole | depth).map(lambda text: text.encode("utf-8", "replace")), 1)


def _check_json(value: Case) -> None:
    for decoding in JSON:
        _decode(decoding, value)


def _decode(decoding: Decoding, value: bytes) -> None:
    """Decode a value: it is a row or has a reason, and Arrow has a type for it."""
    found = decode_column(decoding, pa.array([value], pa.binary()))[0].as_py()
    assert (found["row"] is None) != (found["reason"] is None)


# Values in Avro, framed or not, and their schemas.

KINDS: Final[tuple[Any, ...]] = (
    "boolean", "int", "long", "float", "double", "bytes", "string",
    ["null", "long"], ["int", "long", "null"], ["null", "string"],
    {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    {"type": "fixed", "name": "F", "size": 3},
    {"type": "array", "items": "int"},
    {"type": "array", "items": ["null", "string"]},
    {"type": "map", "values": "long"},
    {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int"}]},
)  # fmt: skip


def _avro_cases() -> SearchStrategy[list[Any]]:
    kinds = st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=3)
    return kinds.flatmap(
        lambda places: st.tuples(
            st.just(places), changed(_avro_values(tuple(places))), st.booleans()
        )
    ).map(list)


@cache
def _avro_schema(places: tuple[int, ...]) -> dict[str, Any]:
    kinds = [_renamed(KINDS[place], number) for number, place in enumerate(places)]
    fields = [{"name": f"f{n}", "type": kind} for n, kind in enumerate(kinds)]
    return {"type": "record", "name": "R", "fields": fields}


def _renamed(kind: Any, number: int) -> Any:
    named = isinstance(kind, dict) and "name" in kind
    return {**kind, "name": f"{kind['name']}{number}"} if named else kind


def _avro_values(places: tuple[int, ...]) -> SearchStrategy[bytes]:
    samples = {
        "boolean": True, "int": -5, "long": 1 << 40, "float": 0.5, "double": 1e300,
        "bytes": b"\0\xff", "string": "ø", "enum": "B", "fixed": b"abc",
        "array": [1, 2], "map": {"k": 5}, "record": {"a": 1},
    }  # fmt: skip
    schema = _avro_schema(places)
    row = {}
    for field in schema["fields"]:
        kind = field["type"]
        if isinstance(kind, list):
            row[field["name"]] = None
        elif isinstance(kind, dict):
            value = samples[kind["type"]]
            strings = kind.get("items") == ["null", "string"]
            row[field["name"]] = ["a", None] if strings else value
        else:
            row[field["name"]] = samples[kind]
    data = BytesIO()
    plain = json.loads(json.dumps(schema).replace("logicalType", "logical"))
    fastavro.schemaless_writer(data, fastavro.parse_schema(plain), row)
    return st.just(data.getvalue()) | st.binary(max_size=20)


def _check_avro(case: Case) -> None:
    places, value, framed = case
    framing = ConfluentFraming((1,)) if framed else None
    data = b"\0\0\0\0\x01" + value if framed else value
    schema = json.dumps(_avro_schema(tuple(places)))
    _decode(Decoding(format="avro", schema=schema, framing=framing), data)


def _schemas() -> SearchStrategy[str]:
    whole = json.dumps(_avro_schema(tuple(range(len(KINDS))))).encode()
    values = number_texts() | st.sampled_from(
        ("null", "[]", "{}", '"R"', '"string"', "true", "NaN", "1e999", "-1", "99",
         "[" * 3000, '["null"]', '[["null"]]', '{"type":"array"}', '"error"', '"map"')
    )  # fmt: skip
    one = st.integers(0, len(KINDS) - 1).map(
        lambda place: json.dumps(_avro_schema((place,))).encode()
    )
    replaced = st.builds(
        _replace_value, one | st.just(whole), st.integers(0, 199), values
    )
    return (replaced | changed(replaced)).map(lambda data: data.decode("latin-1"))


def _check_schema(schema: Case) -> None:
    with contextlib.suppress(ConfigurationError):
        decoder_of(Decoding(format="avro", schema=schema))
        _decode(Decoding(format="avro", schema=schema), b"\0" * 8)


TARGETS: Final = (
    Target(
        name="ledger",
        cases=st.lists(_entries() | st.sampled_from(_ledger()), max_size=4),
        check=_check_ledger,
        modules=("spark.entries", "spark.history", "spark.ledger", "spark.loads"),
        examples=80,
    ),
    Target(
        name="commits",
        cases=_stored_json(COMMIT) | _stored_json(OFFSETS),
        check=_check_commit,
        modules=("spark.pipeline.commits", "spark.pipeline.ledger_range"),
        examples=150,
    ),
    Target(
        name="spark-options",
        cases=_options(),
        check=_check_options,
        modules=("spark.options", "spark.units", "spark.ledger_options"),
        examples=150,
    ),
    Target(
        name="json",
        cases=_json_values(),
        check=_check_json,
        modules=(
            "spark.pipeline.json_decoder",
            "spark.pipeline.converters",
            "spark.pipeline.timestamps",
        ),
        examples=150,
    ),
    Target(
        name="avro",
        cases=_avro_cases(),
        check=_check_avro,
        modules=("spark.pipeline.avro_decoder", "spark.pipeline.framing"),
        examples=150,
    ),
    Target(
        name="avro-schemas",
        cases=_schemas(),
        check=_check_schema,
        modules=("spark.pipeline.avro_schemas",),
        examples=100,
    ),
)
