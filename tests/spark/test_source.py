"""The source as Spark meets it, without a Spark."""

import gc
import pickle
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from sharecons.errors import ConfigurationError
from sharecons.spark import ShareGroupDataSource
from sharecons.spark.tasks import RangesPartition

NEEDED = {
    "kafka.bootstrap.servers": "localhost:9092",
    "subscribe": "orders",
    "kafka.share.group.id": "billing",
    "ledgerLocation": "/ledgers/billing",
}


def source(**options):
    return ShareGroupDataSource(NEEDED | options)


def reader(**options):
    made = source(**options)
    return made.streamReader(made.schema())


def test_its_name_is_sharegroup():
    assert ShareGroupDataSource.name() == "sharegroup"


def test_columns_follow_sparks_own_source():
    assert source().schema().simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,deliveryCount:int>"
    )
    headers = source(includeHeaders="true").schema()["headers"].dataType
    assert headers.simpleString() == "array<struct<key:string,value:binary>>"


def test_schema_of_the_users_own_is_refused():
    with pytest.raises(ConfigurationError, match="takes no schema"):
        source().streamReader(StructType().add("value", "string"))
    with pytest.raises(ConfigurationError, match="takes no schema"):
        source().reader(StructType().add("value", "string"))


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "5"}, ReadMaxRows(5)),
        ({"minOffsetsPerTrigger": "5"}, ReadMinRows(5)),
        ({"minOffsetsPerTrigger": "2", "maxOffsetsPerTrigger": "5"}, ReadMaxRows(5)),
    ],
)
def test_limit_is_what_the_options_say(options, limit):
    assert reader(**options).getDefaultReadLimit() == limit


def test_reader_is_made_and_pickled_without_a_broker_or_a_ledger():
    made = reader()

    copy = pickle.loads(pickle.dumps(made))
    assert isinstance(copy, SupportsTriggerAvailableNow)
    copy.stop()


def test_keys_to_the_ledgers_store_do_not_travel_to_tasks():
    made = source(**{"ledger.secret": "hush"})
    for one in (made.streamReader(made.schema()), made.reader(made.schema())):
        assert b"hush" not in pickle.dumps(one)


def test_first_task_spares_the_collector_what_is_there():
    gc.unfreeze()
    try:
        made = source().reader(source().schema())
        assert [] == list(made.read(RangesPartition([])))
        spared = gc.get_freeze_count()
        more = [[] for _ in range(1000)]
        assert [] == list(made.read(RangesPartition([])))
        # No equality: what is spared may still end, when nobody holds it any more.
        assert 0 < gc.get_freeze_count() < spared + len(more)
    finally:
        gc.unfreeze()


def test_term_signal_does_not_end_a_process_before_its_member_has_left():
    program = """
import signal, sys, time
from sharecons.spark import source

class Query:
    def stop_soon(self):
        print("leaves", flush=True)

source._end_on_signal(Query())
print("ready", flush=True)
sys.stdin.read()
print("ends", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "leaves\n"
    time.sleep(0.1)
    printed, _ = process.communicate(timeout=20)

    assert printed == "ends\n"
    assert process.returncode == 0
