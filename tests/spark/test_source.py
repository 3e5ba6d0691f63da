"""The source through Spark's interface, mostly without a Spark session."""

import gc
import json
import signal
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from pyspark import cloudpickle
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from sharecons.errors import ConfigurationError
from sharecons.spark import ShareGroupDataSource
from sharecons.spark.options import read_options
from sharecons.spark.source import InvalidStreamReader, default_limit
from sharecons.spark.tasks import RangesPartition
from sharecons.version import VERSION

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


def test_name_is_sharegroup():
    assert ShareGroupDataSource.name() == "sharegroup"


def test_columns_follow_sparks_own_source():
    assert source().schema().simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,deliveryCount:int>"
    )
    headers = source(includeHeaders="true").schema()["headers"].dataType
    assert headers.simpleString() == "array<struct<key:string,value:binary>>"


def test_users_schema_is_rejected():
    made = source().streamReader(StructType().add("value", "string"))
    with pytest.raises(ConfigurationError, match="takes no schema"):
        made.initialOffset()
    with pytest.raises(ConfigurationError, match="takes no schema"):
        source().reader(StructType().add("value", "string"))


def test_schema_that_differs_in_nullability_is_accepted():
    made = source(includeHeaders="true")
    given = StructType.fromJson(
        json.loads(made.schema().json().replace("true", "false"))
    )
    assert given != made.schema()

    made.reader(given)
    assert not isinstance(made.streamReader(given), InvalidStreamReader)


@pytest.mark.parametrize("name", ["startingPosition", "colour"])
def test_stream_with_invalid_options_raises_at_each_call(name):
    made = ShareGroupDataSource(NEEDED | {name: "5"})
    copy = cloudpickle.loads(cloudpickle.dumps(made.streamReader(source().schema())))

    for call in (
        copy.initialOffset,
        copy.getDefaultReadLimit,
        copy.prepareForTriggerAvailableNow,
        copy.reportLatestOffset,
        lambda: copy.latestOffset({}, ReadAllAvailable()),
    ):
        with pytest.raises(ConfigurationError, match=name):
            call()
    copy.stop()


@pytest.mark.slow("Spark starts processes")
@pytest.mark.filterwarnings("ignore")
def test_stream_with_a_schema_fails_with_a_clear_error(spark, tmp_path):
    reading = spark.readStream.schema("value STRING").format("sharegroup")
    writing = reading.options(**NEEDED).load().writeStream.format("noop")
    query = writing.option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(60)

    assert "takes no schema" in str(caught.value)
    assert "UnboundLocalError" not in str(caught.value)


@pytest.mark.slow("Spark starts processes")
@pytest.mark.filterwarnings("ignore")
def test_tables_are_rejected_and_views_accepted(spark):
    options = ", ".join(f"'{name}' '{value}'" for name, value in NEEDED.items())
    with pytest.raises(AnalysisException, match="CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE t USING sharegroup OPTIONS ({options})")

    spark.sql(f"CREATE TEMPORARY VIEW v USING sharegroup OPTIONS ({options})")
    columns = [row.col_name for row in spark.sql("DESCRIBE v").collect()]
    assert columns == source().schema().names
    spark.sql("DROP VIEW v")


def test_table_without_options_is_explained():
    with pytest.raises(ConfigurationError, match="CREATE TEMPORARY VIEW"):
        ShareGroupDataSource({}).reader(source().schema())
    with pytest.raises(ConfigurationError) as caught:
        ShareGroupDataSource({"subscribe": "a"}).schema()
    assert "TABLE" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "5"}, ReadMaxRows(5)),
        ({"minOffsetsPerTrigger": "5"}, ReadMinRows(5)),
        ({"maxBytesPerTrigger": "2k"}, ReadMaxBytes(2048)),
        ({"maxBytesPerTrigger": "2", "maxOffsetsPerTrigger": "5"}, ReadMaxRows(5)),
        ({"minOffsetsPerTrigger": "2", "maxOffsetsPerTrigger": "5"}, ReadMaxRows(5)),
    ],
)
def test_default_limit_follows_the_options(options, limit):
    assert default_limit(read_options(NEEDED | options)) == limit


def test_reader_is_picklable_without_broker_and_ledger():
    made = reader()

    copy = cloudpickle.loads(cloudpickle.dumps(made))
    assert isinstance(copy, SupportsTriggerAvailableNow)
    copy.stop()


def test_end_of_sparks_connection_stopping_no_stack_trace(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    reader = InvalidStreamReader("unused")
    try:
        raise EOFError
    except EOFError:
        reader.stop()  # like Spark's runner, in a `finally`
    with sys.stderr:
        sys.stderr.write("Traceback (most recent call last)")

    assert capsys.readouterr().err == ""


def test_other_errors_are_reported_after_a_stop(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    reader = InvalidStreamReader("unused")
    try:
        raise ValueError
    except ValueError:
        reader.stop()
    sys.stderr.write("Traceback (most recent call last)")

    assert capsys.readouterr().err.startswith("Traceback")


def test_tasks_do_not_get_credentials_of_the_ledger():
    made = source(**{"ledger.secret": "s3cret"})
    for one in (made.streamReader(made.schema()), made.reader(made.schema())):
        assert b"s3cret" not in cloudpickle.dumps(one)


def unpickle_without(modules, made):
    """Unpickle an object in a Python that cannot import some modules.

    Returns the last line that it prints.
    """
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({modules!r}))\n"
        "from pyspark import cloudpickle\n"
        "cloudpickle.loads(sys.stdin.buffer.read())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=cloudpickle.dumps(made),
        capture_output=True,
    )
    assert ended.returncode == 1
    return ended.stderr.decode().splitlines()[-1]


@pytest.mark.slow("starts a process that imports pyspark")
@pytest.mark.parametrize("missing", ["sharecons", "sharecons.spark.source"])
def test_worker_without_sharecons_says_what_to_install_where(missing):
    made = source()
    for one in (made, made.reader(made.schema()), made.streamReader(made.schema())):
        line = unpickle_without([missing], one)

        assert line.startswith(
            f"ImportError: the Python of this worker ({sys.executable}"
        )
        assert f"install sharecons[arrow] {VERSION} there" in line


def load_id(**options):
    """Return the load id that each unpickled copy of a plan has."""
    made = cloudpickle.loads(cloudpickle.dumps(source(**options)))
    ids = {
        cloudpickle.loads(cloudpickle.dumps(made)).reader(made.schema()).load_id
        for _ in range(2)
    }
    (only,) = ids
    return only


def test_load_id_is_unique_and_kept_in_the_plan():
    assert load_id() != load_id()
    assert load_id(loadId="monday") == "monday"


def test_first_task_freezes_existing_objects():
    gc.unfreeze()
    try:
        made = source().reader(source().schema())
        assert [] == list(made.read(RangesPartition([])))
        frozen = gc.get_freeze_count()
        more = [[] for _ in range(1000)]
        assert [] == list(made.read(RangesPartition([])))
        # Not equal: frozen objects can be freed meanwhile.
        assert 0 < gc.get_freeze_count() < frozen + len(more)
    finally:
        gc.unfreeze()


def test_sigterm_stops_the_query_and_not_the_process():
    program = """
import signal, sys, time
from sharecons.spark import source

class Query:
    def request_stop(self):
        print("stopping", flush=True)

source.stop_on_sigterm(Query())
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
    assert process.stdout.readline() == "stopping\n"
    printed, _ = process.communicate(timeout=20)

    assert printed == "ends\n"
    assert process.returncode == 0


@pytest.mark.slow("starts a process that imports pyspark")
def test_source_that_spark_registers_imports_sharecons_on_first_use():
    program = (
        "import sys\n"
        "from pyspark_sharecons import DefaultSource\n"
        "print(DefaultSource.name(), 'sharecons' in sys.modules)\n"
        f"print(type(DefaultSource({NEEDED!r})).__name__)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True)

    assert ended.stdout.decode().split() == [
        "sharegroup",
        "False",
        "ShareGroupDataSource",
    ]
