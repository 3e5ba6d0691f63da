"""The layout of a pipeline's directory, and its commit files."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from pyspark.sql.types import LongType, StructField, StructType

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.commits import Commit, CommitLog
from sharecons.spark.pipeline.errors import CommitError
from sharecons.spark.pipeline.layout import Layout
from sharecons.spark.pipeline.ledger_range import LedgerRange
from sharecons.spark.pipeline.own_columns import key_columns
from sharecons.spark.pipeline.stats import BatchStats
from tests.spark.memory_storage import MemoryStorage


def field(name, kind):
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def struct(**kinds):
    return {"type": "struct", "fields": [field(n, kind) for n, kind in kinds.items()]}


def layout(columns=None, **more):
    settings = {"sink": "parquet", "partition_by": ("day",)} | more
    return Layout(columns=columns or {"id": "long"}, **settings)


def test_layout_gets_new_columns_and_keeps_old_ones():
    old = layout({"id": "long", "at": struct(x="integer")})
    new = layout({"ID": "long", "at": struct(y="string"), "name": "string"})

    extended = old.extend(new, "/data")

    assert extended.columns["id"] == "long"
    assert set(extended.columns) == {"id", "at", "name"}
    kind = StructType.fromJson(extended.columns["at"])
    assert kind.simpleString() == "struct<x:int,y:string>"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (layout(partition_by=("country",)), "--partition-by is country, but the rows"),
        (layout(prefix="k_"), "--prefix is k_, but the rows in /data .* with none"),
        (layout(sink="delta"), "--sink is delta"),
        (layout(merge_by=("id",)), "--merge-by is id"),
        (layout({"id": "string"}), "column id is STRING, but /data has BIGINT"),
        (layout({"Id": "string"}), "column id is STRING, but /data has BIGINT"),
    ],
)
def test_layout_of_earlier_rows_cannot_change(new, message):
    with pytest.raises(ConfigurationError, match=message):
        layout().extend(new, "/data")


def test_type_within_a_struct_cannot_change():
    old, new = (layout({"at": struct(x=kind)}) for kind in ("integer", "string"))

    with pytest.raises(ConfigurationError, match="column x is STRING, but"):
        old.extend(new, "/data")


# Keys.


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (["amount"], "--merge-by amount: the column can be null"),
        (["name"], "--merge-by name: there is no such column"),
        (["id", "ID"], "--merge-by id is repeated"),
    ],
)
def test_invalid_key_is_an_error(requested, message):
    columns = [StructField("id", LongType(), False), StructField("amount", LongType())]

    with pytest.raises(ConfigurationError, match=message):
        key_columns(requested, StructType(columns))


# Commit files.


def commit(staging="staging/0123abcd-7.first"):
    return Commit(
        batch="0123abcd-7",
        number=7,
        query="0123abcd-0000",
        staging=staging,
        files={"rows": {f"{staging}/rows/a": "rows/0123abcd-7-00000.parquet"}},
        removed=("quarantine/x.parquet",),
        range=LedgerRange("4f", 10, 20),
        stats=BatchStats(
            batch="0123abcd-7",
            number=7,
            run="first",
            at=datetime(2026, 11, 28, tzinfo=UTC),
            rows=1,
            quarantined=2,
            redelivered=0,
            bytes=10,
            lag=-1,
            backlog=-1,
            latency_p50=0.5,
            latency_p90=0.5,
            latency_p99=0.5,
            seconds=0.1,
            reasons={"no value": 2},
        ),
    )


def test_commit_file_has_all_of_a_commit():
    log = CommitLog(MemoryStorage())

    assert log.find("0123abcd-7") is None
    assert log.add(commit()) == commit()
    assert log.find("0123abcd-7") == commit()
    assert log.list_batches() == ["0123abcd-7"]


def test_first_commit_of_a_batch_counts():
    log = CommitLog(MemoryStorage())
    log.add(commit())

    assert log.add(commit("staging/0123abcd-7.second")) == commit()


def test_all_commits_are_read():
    log = CommitLog(MemoryStorage())
    commits = [commit(), replace(commit(), batch="requeue-0", range=None)]
    for each in commits:
        log.add(each)
    log.create_id("first")

    assert log.read_all() == commits


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"batch": "0123abcd-7"}'])
def test_damaged_commit_file_is_an_error(data):
    storage = MemoryStorage()
    storage.create("0123abcd-7.json", data)
    log = CommitLog(storage, "/data/commits")

    for read in (log.read_all, lambda: log.find("0123abcd-7")):
        with pytest.raises(CommitError, match="/data/commits/0123abcd-7.json is dama"):
            read()


def test_id_of_the_commit_files_is_not_a_batch():
    log = CommitLog(MemoryStorage())
    assert log.find_id() is None

    log.create_id("first")
    log.create_id("first")

    assert log.find_id() == "first"
    assert log.list_batches() == []


# Ranges of batches.


@pytest.mark.parametrize(
    ("other", "same", "overlaps"),
    [
        (LedgerRange("4f", 10, 20), True, True),
        (LedgerRange("4f", None, 20), True, True),
        (LedgerRange("5a", 10, 20), False, False),
        (LedgerRange("4f", 10, 30), False, True),
        (LedgerRange("4f", 0, 11), False, True),
        (LedgerRange("4f", 12, 15), False, True),
        (LedgerRange("4f", 0, 10), False, False),
        (LedgerRange("4f", 20, 30), False, False),
        (LedgerRange("4f", None, 15), False, True),
        (LedgerRange("4f", None, 30), False, False),
    ],
)
def test_ranges_are_compared_as_far_as_they_are_known(other, same, overlaps):
    known = LedgerRange("4f", 10, 20)

    for one, two in ((known, other), (other, known)):
        assert one.is_same(two) is same
        assert one.overlaps(two) is overlaps
