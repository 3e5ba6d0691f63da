"""Reading ranges of the log as Arrow batches, while brokers work and fail."""

import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from sharecons.errors import (
    AuthenticationError,
    AuthorizationError,
    ConfigurationError,
    RecordsError,
    RequestTimedOutError,
)
from sharecons.net.io.transport import TcpNetwork
from sharecons.spark.arrow import SCHEMA, SCHEMA_WITH_HEADERS
from sharecons.spark.errors import DataLostError
from tests.spark.fetch_helpers import Logs, embedded, offsets, threads_left_by


def values(count):
    return [b"%d" % n for n in range(count)]


@pytest.fixture
def logs(any_kafka):
    return Logs(any_kafka.bootstrap_servers)


# On both brokers.


def test_rows_have_the_columns_of_sparks_source_and_the_delivery_count(any_kafka, logs):
    topic = any_kafka.admin.create_topic()
    any_kafka.admin.produce(topic, [b"v", None], keys=[b"k", None])

    rows = logs.rows(logs.acquired(topic, 0, 0, count=3), logs.acquired(topic, 1, 1))

    assert [(b"k", b"v", 0, 3), (None, None, 1, 1)] == [
        (row["key"], row["value"], row["offset"], row["deliveryCount"]) for row in rows
    ]
    for row in rows:
        assert (topic, 0, 0) == (row["topic"], row["partition"], row["timestampType"])
        assert abs((datetime.now(UTC) - row["timestamp"]).total_seconds()) < 60


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_several_partitions_are_in_order(any_kafka, logs, compression):
    topic = any_kafka.admin.create_topic(partitions=3)
    for partition in range(3):
        any_kafka.admin.produce(
            topic, values(700), partition=partition, compression=compression
        )

    rows = logs.rows(*(logs.acquired(topic, 0, 699, partition=p) for p in range(3)))

    for partition in range(3):
        mine = [row for row in rows if row["partition"] == partition]
        assert list(range(700)) == [row["offset"] for row in mine]
        assert values(700) == [row["value"] for row in mine]


def test_only_records_of_the_ranges_are_read(any_kafka, logs):
    topic = any_kafka.admin.create_topic()
    any_kafka.admin.produce(topic, values(300))
    spans = [(3, 3), (10, 19), (21, 40), (250, 260), (299, 299)]

    rows = logs.rows(*(logs.acquired(topic, *span) for span in reversed(spans)))

    expected = [n for first, last in spans for n in range(first, last + 1)]
    assert [(0, n) for n in expected] == offsets(rows)
    assert [b"%d" % n for n in expected] == [row["value"] for row in rows]


def test_reading_ranges_again_returns_the_same_rows(any_kafka, logs):
    topic = any_kafka.admin.create_topic()
    any_kafka.admin.produce(topic, values(100))
    acquired = logs.acquired(topic, 20, 79)

    assert logs.rows(acquired) == logs.rows(acquired)


def test_headers_are_rows_of_key_and_value(any_kafka, logs):
    topic = any_kafka.admin.create_topic()
    headers = [("a", b"1"), ("b", None), ("a", b"")]
    any_kafka.admin.produce(topic, [b"with"], headers=headers)
    any_kafka.admin.produce(topic, [b"without"])

    rows = logs.rows(logs.acquired(topic, 0, 1), schema=SCHEMA_WITH_HEADERS)

    assert [
        [{"key": name, "value": value} for name, value in headers],
        None,
    ] == [row["headers"] for row in rows]


def test_transaction_markers_are_not_rows(any_kafka, logs):
    topic = any_kafka.admin.create_topic()
    producer = any_kafka.admin.producer(transactional_id=topic)
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction) * 2:
        producer.begin_transaction()
        for value in (b"x", b"y"):
            producer.produce(topic, value, partition=0)
        producer.flush(30)
        end(30)
    whole = logs.acquired(topic, 0, 10)
    committed = [0, 1, 6, 7]
    aborted = [3, 4, 9, 10]

    all_of_them = logs.rows(whole)
    only_committed = logs.rows(whole, isolation="read_committed")

    assert sorted(committed + aborted) == [row["offset"] for row in all_of_them]
    assert committed == [row["offset"] for row in only_committed]


def test_deleted_records_are_an_error_that_names_their_offsets(any_kafka, logs):
    topic = any_kafka.admin.create_topic()
    any_kafka.admin.produce(topic, values(50))
    ranges = [logs.acquired(topic, 5, 9), logs.acquired(topic, 15, 29)]
    logs.delete_before(topic, 20)

    with pytest.raises(DataLostError) as raised:
        logs.rows(*ranges)

    assert f"{topic}-0, offsets 5 to 19 cannot be read any more" in str(raised.value)
    assert "log now starts at 20" in str(raised.value)
    assert "failOnDataLoss" in str(raised.value)


def test_deleted_records_are_skipped_on_request(any_kafka, logs):
    topic = any_kafka.admin.create_topic(partitions=2)
    for partition in range(2):
        any_kafka.admin.produce(topic, values(50), partition=partition)
    ranges = [logs.acquired(topic, 5, 9), logs.acquired(topic, 15, 29)]
    ranges.append(logs.acquired(topic, 0, 9, partition=1))
    logs.delete_before(topic, 20)
    logs.delete_before(topic, 50, partition=1)

    rows = logs.rows(*ranges, fail_on_data_loss=False)

    assert [(0, n) for n in range(20, 30)] == offsets(rows)


def test_offset_beyond_the_log_is_lost(any_kafka, logs):
    topic = any_kafka.admin.create_topic()
    any_kafka.admin.produce(topic, values(5))

    with pytest.raises(DataLostError, match="offsets 7 to 9 .*ends before"):
        logs.rows(logs.acquired(topic, 7, 9))


@pytest.mark.slow("Spark reads from a broker")
def test_offset_at_the_end_of_the_log_is_awaited(any_kafka, logs, monkeypatch):
    monkeypatch.setattr("sharecons.protocol.log_reader.reader.MAX_WAIT", 0.05)
    topic = any_kafka.admin.create_topic()
    any_kafka.admin.produce(topic, values(5))

    with pytest.raises(RequestTimedOutError, match="reading offset 5 failed"):
        logs.rows(logs.acquired(topic, 3, 5), timeout=0.5)


def test_records_larger_than_the_fetch_size_are_read(any_kafka, logs):
    topic = any_kafka.admin.create_topic(partitions=3)
    large = [bytes(900_000) for _ in range(4)]
    for partition in range(3):
        any_kafka.admin.produce(topic, large, partition=partition)

    rows = logs.rows(*(logs.acquired(topic, 0, 3, partition=p) for p in range(3)))

    assert {(p, n) for p in range(3) for n in range(4)} == set(offsets(rows))
    assert {900_000} == {len(row["value"]) for row in rows}


# Faults of the embedded broker.

FAULTS = {
    "connection cut before": lambda trap: trap.cut(),
    "connection cut after": lambda trap: trap.cut(after=True),
    "response lost": lambda trap: trap.lose(),
    "not the leader": lambda trap: trap.refuse("NOT_LEADER_OR_FOLLOWER"),
    "unknown epoch": lambda trap: trap.refuse("UNKNOWN_LEADER_EPOCH"),
    "unknown topic id": lambda trap: trap.refuse("UNKNOWN_TOPIC_ID"),
    "unknown error": lambda trap: trap.refuse("UNKNOWN_SERVER_ERROR"),
    "corrupt response": lambda trap: trap.corrupt(),
    "throttled": lambda trap: trap.throttle(0.1),
}


@pytest.mark.slow("Spark reads from a broker")
@pytest.mark.parametrize("api", ["ApiVersions", "Metadata", "Fetch"])
@pytest.mark.parametrize("fault", FAULTS)
def test_temporary_faults_lose_no_row(api, fault):
    with embedded(topics={"t": 2}) as (broker, logs):
        for partition in range(2):
            broker.produce("t", values(60), partition=partition, batch=10)
        ranges = [logs.acquired("t", 0, 59, partition=p) for p in range(2)]
        for after in (0, 2):
            FAULTS[fault](broker.faults.on(api, after=after))

        rows = logs.rows(*ranges, request_timeout=0.5)

    assert [(p, n) for p in range(2) for n in range(60)] == sorted(offsets(rows))


def test_moved_leader_is_followed():
    with embedded(brokers=3, topics={"t": 1}) as (broker, logs):
        broker.produce("t", values(90), batch=10)
        acquired = logs.acquired("t", 0, 89)
        old = broker.leader("t")
        move = broker.faults.on("Fetch").refuse("NOT_LEADER_OR_FOLLOWER")
        broker.move_leader("t", 0, to=old % 3 + 1)
        broker.forget_requests()

        rows = logs.rows(acquired)
        nodes = {each.node_id for each in broker.requests if each.api == "Fetch"}

    assert move.hits
    assert list(range(90)) == [row["offset"] for row in rows]
    assert {old % 3 + 1} == nodes


def test_reading_continues_after_a_leader_has_stopped(monkeypatch):
    monkeypatch.setattr("sharecons.protocol.log_reader.reader.MAX_BYTES", 200_000)
    with embedded(brokers=3, topics={"t": 1}) as (broker, logs):
        broker.produce("t", [bytes(1000)] * 2000, batch=50)

        batches = logs.batches([logs.acquired("t", 0, 1999)], request_timeout=2)
        read = next(batches)["offset"].to_pylist()
        broker.stop_broker(broker.leader("t"))
        for batch in batches:
            read += batch["offset"].to_pylist()

    assert list(range(2000)) == read


@pytest.mark.slow("Spark reads from a broker")
def test_unreachable_brokers_fail_the_read_after_its_timeout():
    with embedded(topics={"t": 1}) as (broker, logs):
        broker.produce("t", values(5))
        acquired = logs.acquired("t", 0, 4)
    began = time.monotonic()

    with pytest.raises(RequestTimedOutError, match="t-0: reading offset 0 failed"):
        logs.rows(acquired, timeout=0.5)

    assert time.monotonic() - began < 10


class WrongCertificate(TcpNetwork):
    """Connects, after it has rejected the broker's certificate a number of times."""

    def __init__(self, rejections):
        super().__init__()
        self.rejections = rejections

    async def connect(self, endpoint):
        self.rejections -= 1
        if self.rejections < 0:
            return await super().connect(endpoint)
        error = ssl.SSLCertVerificationError()
        error.verify_message, error.verify_code = "unable to get issuer certificate", 20
        raise error


def test_wrong_certificate_for_seconds_loses_no_row():
    with embedded(topics={"t": 1}) as (broker, logs):
        broker.produce("t", values(5))
        network = WrongCertificate(rejections=2)

        assert 5 == len(logs.rows(logs.acquired("t", 0, 4), network=network))


def test_lasting_wrong_certificate_fails_the_read_with_its_cause(monkeypatch):
    monkeypatch.setattr("sharecons.protocol.grace_period.DURATION", 0.05)
    with embedded(topics={"t": 1}) as (_, logs):
        network = WrongCertificate(rejections=1000)

        with pytest.raises(AuthenticationError, match="check the certificate of this"):
            logs.rows(logs.acquired("t", 0, 4), network=network, timeout=5.0)


@pytest.mark.slow("Spark reads from a broker")
def test_recreated_topic_is_data_loss(monkeypatch):
    monkeypatch.setattr(
        "sharecons.protocol.log_reader.reader.UNKNOWN_TOPIC_TIMEOUT", 0.2
    )
    with embedded(topics={"t": 1}) as (broker, logs):
        acquired = logs.acquired("t", 0, 4)
        broker.delete_topic("t")
        broker.create_topic("t")
        broker.produce("t", values(5))

        with pytest.raises(DataLostError, match="topic was deleted"):
            logs.rows(acquired)
        assert [] == logs.rows(acquired, fail_on_data_loss=False)


def test_forbidden_topic_fails_immediately():
    with embedded(topics={"t": 1}) as (broker, logs):
        broker.produce("t", values(5))
        broker.faults.on("Fetch").refuse("TOPIC_AUTHORIZATION_FAILED", each=True)

        with pytest.raises(AuthorizationError, match="t-0: TOPIC_AUTH.*READ"):
            logs.rows(logs.acquired("t", 0, 4))


def test_damaged_batch_is_an_error_with_its_offset():
    with embedded(topics={"t": 1}) as (broker, logs):
        broker.produce("t", values(20), batch=10)
        broker.corrupt_batch("t", 0, 12)

        with pytest.raises(
            RecordsError, match="t-0, .*batch at offset 10: the checksum"
        ):
            logs.rows(logs.acquired("t", 0, 19))
        assert 10 == len(logs.rows(logs.acquired("t", 0, 9)))


# Requests and resources.


def test_partitions_of_one_leader_share_a_request():
    with embedded(topics={"t": 20}) as (broker, logs):
        broker.produce("t", values(200))
        ranges = [logs.acquired("t", 0, 9, partition=p) for p in range(20)]
        broker.forget_requests()

        assert 200 == len(logs.rows(*ranges))
        fetches = [each.api for each in broker.requests if each.api == "Fetch"]

    assert len(fetches) <= 3


PAUSED_FETCH = ("Fetch", "paused")


@pytest.mark.slow("Spark reads from a broker")
def test_fetching_pauses_while_the_queue_is_full(monkeypatch):
    monkeypatch.setattr("sharecons.protocol.log_reader.reader.MAX_BYTES", 100_000)
    monkeypatch.setattr("sharecons.spark.fetch_thread.MAX_QUEUED_BYTES", 200_000)
    with embedded(topics={"t": 1}) as (broker, logs):
        broker.produce("t", [bytes(1000)] * 3000, batch=50)
        broker.forget_requests()

        ranges = [logs.acquired("t", 0, 2999)]
        batches = logs.batches(ranges, client_id="paused")
        first = next(batches)
        # Meanwhile another client reads everything.
        assert 3000 == len(logs.rows(*ranges))
        fetches = [r for r in broker.requests if (r.api, r.client_id) == PAUSED_FETCH]
        rest = sum(batch.num_rows for batch in batches)

    assert len(fetches) < 8
    assert 3000 == first.num_rows + rest


def test_no_thread_is_left_after_reading():
    with embedded(topics={"t": 1}) as (broker, logs):
        broker.produce("t", values(50), batch=10)
        acquired = logs.acquired("t", 0, 49)

        def abandoned():
            batches = logs.batches([acquired])
            next(batches)
            batches.close()

        assert [] == threads_left_by(lambda: logs.rows(acquired))
        assert [] == threads_left_by(abandoned)


PARTIAL_READER = """
import sys
from sharecons.spark.fetching import read_ranges
from sharecons.spark.ledger import AcquiredRange

acquired = AcquiredRange("t", bytes.fromhex(sys.argv[2]), 0, 0, 2999, 1)
batches = read_ranges([acquired], bootstrap_servers=sys.argv[1])
print(next(batches).num_rows > 0)
"""


@pytest.mark.slow("Spark reads from a broker")
def test_process_ends_though_rows_are_not_read():
    with embedded(topics={"t": 1}) as (broker, logs):
        broker.produce("t", [bytes(10_000)] * 3000, batch=50)
        command = [sys.executable, "-c", PARTIAL_READER]

        done = subprocess.run(
            [*command, logs.bootstrap_servers, logs.topic_id("t").hex()],
            capture_output=True,
            check=False,
            text=True,
            timeout=30,
        )

    assert (0, "True\n", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.slow("Spark reads from a broker")
def test_slow_task_loses_no_row():
    with embedded(topics={"t": 2}) as (broker, logs):
        for partition in range(2):
            broker.produce("t", [bytes(5000)] * 2000, partition=partition, batch=20)
        ranges = [logs.acquired("t", 0, 1999, partition=p) for p in range(2)]

        rows = 0
        for batch in logs.batches(ranges, timeout=0.05):
            rows += batch.num_rows
            time.sleep(0.1)  # real time: the fetches run in another thread

    assert 4000 == rows


def test_empty_ranges_open_no_connection():
    logs = Logs("127.0.0.1:1")

    assert [] == logs.rows()


def test_unknown_isolation_is_rejected_before_connecting():
    with pytest.raises(ConfigurationError, match="isolation must be 'read_unc"):
        Logs("127.0.0.1:1").batches([], isolation="serializable")


def test_columns_follow_the_requested_schema():
    with embedded(topics={"t": 1}) as (broker, logs):
        broker.produce("t", [b"x"])
        acquired = logs.acquired("t", 0, 0)
        (plain,) = logs.batches([acquired])
        (headed,) = logs.batches([acquired], schema=SCHEMA_WITH_HEADERS)
        (few,) = logs.batches([acquired], schema=pa.schema([SCHEMA.field("offset")]))

    assert (SCHEMA, SCHEMA_WITH_HEADERS) == (plain.schema, headed.schema)
    assert [{"offset": 0}] == few.to_pylist()
