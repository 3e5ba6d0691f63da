"""Missing, forbidden, deleted and recreated topics fail a query or are logged."""

import threading
import uuid
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import pytest
from anyio import to_thread

from sharecons._record import TopicPartition
from sharecons.errors import AuthorizationError, BrokerError, ConnectionFailedError
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.models import GroupOffset, Topic, TopicPartitionInfo
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code
from sharecons.spark import watch
from sharecons.spark.batch import BatchQuery
from sharecons.spark.errors import LedgerMismatchError, TopicMissingError
from sharecons.spark.factory import create_driver, open_driver
from sharecons.spark.group_lag import GroupLag
from sharecons.spark.ledger import AcquiredRange, Ledger
from sharecons.spark.options import read_options
from sharecons.spark.stream import StreamQuery
from sharecons.spark.topics import classify_topics, select_topics
from sharecons.spark.watch import GroupWatch
from tests.kafka_plugin import HALVES
from tests.spark.broker_requests import wait_for_requests
from tests.waiting import until_true

ID = bytes(range(16))
confluent = import_module("confluent_kafka.admin")
SKIP = {"failOnDataLoss": "false"}


# Descriptions of topics.


def topic(name, leaders, allowed=None):
    partitions = {
        number: TopicPartitionInfo(
            leader=leader, leader_epoch=1, replicas=(1,), in_sync=(1,)
        )
        for number, leader in enumerate(leaders)
    }
    return Result(
        Topic(
            name=name,
            topic_id=ID,
            internal=False,
            partitions=partitions,
            authorized_operations=allowed,
        )
    )


def no_topic(code):
    return Result(error=broker_error("describe", "topic", code, None))


def test_topics_are_classified_by_their_description():
    topics = classify_topics(
        Results(
            {
                "orders": topic("orders", [1, None, 2], frozenset({"READ"})),
                "old": topic("old", [1], frozenset()),
                "bills": no_topic(Code.UNKNOWN_TOPIC_OR_PARTITION),
                "new": no_topic(Code.LEADER_NOT_AVAILABLE),
            }
        )
    )

    assert topics.ids == {"orders": ID, "old": ID}
    assert sorted(topics.with_leader) == [("old", 0), ("orders", 0), ("orders", 2)]
    assert topics.leaderless == {TopicPartition("orders", 1)}
    assert topics.missing == {"bills"}
    assert list(topics.errors) == ["new"]


def test_pattern_selects_whole_names_without_kafkas_own_topics():
    internal = Result(replace(topic("x", [1]).value, internal=True))
    described = Results(
        {
            "orders.eu": topic("orders.eu", [1]),
            "old.orders.eu": topic("old.orders.eu", [1]),
            "orders.internal": internal,
            "bills": topic("bills", [1]),
        }
    )

    selected = select_topics(described, "orders[.].*", ["bills", "orders.us"])
    assert list(selected.found) == ["bills", "orders.eu"]
    assert classify_topics(selected).missing == {"orders.us"}


@pytest.mark.parametrize(
    "found",
    [
        no_topic(Code.TOPIC_AUTHORIZATION_FAILED),
        topic("secret", [1], frozenset({"DESCRIBE"})),
    ],
)
def test_topic_without_read_permission_is_an_error(found):
    described = Results({"orders": topic("orders", [1]), "secret": found})

    with pytest.raises(AuthorizationError, match="'secret' is not readable"):
        classify_topics(described)


def test_group_offsets_of_a_replaced_topic_are_ignored():
    new_id = bytes(range(1, 17))
    ledger = Ledger()
    ledger.append([AcquiredRange("orders", ID, 0, 0, 99, 1)])
    ledger.append(
        ledger.select_new(
            [AcquiredRange("orders", new_id, 0, 0, 9, 1)], allow_recreated=True
        )
    )
    ledger.trim(110)
    group_watch = GroupWatch(
        None,
        SimpleNamespace(
            topics=("orders",),
            topic_pattern=None,
            settings=SimpleNamespace(fetch=SimpleNamespace(group_id="g")),
        ),
        ledger,
        allow_topic_loss=True,
        changed=threading.Condition(),
        pause_writes=None,
        subscribe=None,
    )
    offsets = {
        TopicPartition("orders", 0): GroupOffset(
            start_offset=50, leader_epoch=1, lag=None
        )
    }

    group_watch.apply_lag(GroupLag(offsets=offsets, topic_ids={"orders": ID}))
    assert list(ledger.redeliverable.values()) == [[(0, 9)]]
    group_watch.apply_lag(GroupLag(offsets=offsets, topic_ids={"orders": new_id}))
    assert ledger.redeliverable == {}


# Queries.


@pytest.fixture
def short_timeouts(monkeypatch):
    monkeypatch.setattr(watch, "START_TOPIC_TIMEOUT", 0.5)
    monkeypatch.setattr(watch, "TOPIC_TIMEOUT", 0.5)
    monkeypatch.setattr(watch, "REFRESH_INTERVAL", 0.2)


class Queries:
    """Creates queries on one broker, group and ledger."""

    def __init__(self, servers, base):
        self.group = f"billing-{uuid.uuid4().hex[:8]}"
        self.given = {
            "kafka.bootstrap.servers": servers,
            "kafka.share.group.id": self.group,
            "kafka.share.auto.offset.reset": "earliest",
            "ledgerLocation": str(base / "ledger"),
            "idleTimeout": "2s",
            # Stopping waits for the fetch that the broker holds.
            "kafka.fetch.max.wait.ms": "50",
        }
        self.drivers = []
        self.on_start = lambda driver: None  # called after a driver has started

    def options(self, *topics, **more):
        names = {"subscribe": ",".join(topics)} if topics else {}
        return read_options(self.given | names | more)

    def open(self, options, load_id=None):
        opened = open_driver(options, load_id)
        self.drivers.append(opened.driver)
        opened.driver.mark_planned(opened.driver.begin)  # as Spark's first call
        self.on_start(opened.driver)
        return opened

    def make(self, options, store, ledger):
        driver = create_driver(options, store, ledger)
        self.drivers.append(driver)
        start = driver.start

        def start_and_go_on():
            start()
            self.on_start(driver)

        driver.start = start_and_go_on
        return driver

    def stream(self, *topics, **more):
        return StreamQuery(self.options(*topics, **more), opener=self.open)

    def available_now(self, *topics, **more):
        """Start a Trigger.AvailableNow stream.

        Return a function that runs it to the end, and returns its number of offsets.
        """
        query = self.stream(*topics, **more)
        query.end_when_drained()

        def drain():
            start = at = query.initial_offset()
            try:
                while True:
                    end = query.latest_offset(at, max_offsets=None, min_offsets=None)
                    if end == at:
                        return end["position"] - start["position"]
                    at = end
            finally:
                query.stop()

        return drain

    def batch(self, *topics, **more):
        """Read a batch, and return its number of offsets."""
        options = self.options(*topics, **more)
        tasks = BatchQuery(
            options, uuid.uuid4().hex, driver_factory=self.make
        ).plan_tasks()
        return sum(each.size for task in tasks for each in task)

    def read(self, way, *topics, **more):
        if way == "batch":
            return self.batch(*topics, **more)
        return self.available_now(*topics, **more)()


@pytest.fixture
def queries(share_broker, tmp_path):
    made = Queries(share_broker.bootstrap_servers, tmp_path)
    yield made
    for driver in made.drivers:
        driver.stop()


@pytest.fixture
def acl_queries(any_kafka, tmp_path):
    made = Queries(any_kafka.bootstrap_servers, tmp_path)
    made.given["idleTimeout"] = "20s"  # creating the first group takes Kafka some time
    yield made
    for driver in made.drivers:
        driver.stop()


WAYS = ("available now", "batch")
both_ways = pytest.mark.parametrize("way", WAYS)


def ways_on(fixture):
    """Return the mark of both ways on the embedded broker, and of one on a real one.

    They send the same requests.
    """
    cases = []
    for half in HALVES:
        if half == "embedded":
            cases += [(half, way) for way in WAYS]
        else:
            cases.append(pytest.param("kafka", WAYS[0], marks=half.marks))
    return pytest.mark.parametrize((fixture, "way"), cases, indirect=[fixture])


def poll_until_error(query, at):
    """Request the latest offset until the query fails."""
    for _ in range(200):
        query.latest_offset({"position": at}, max_offsets=None, min_offsets=None)


@both_ways
def test_missing_topic_is_named_in_the_error(
    share_broker, queries, short_timeouts, way
):
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)

    with pytest.raises(TopicMissingError, match="topic 'ordres' does not exist"):
        queries.read(way, "ordres")
    with pytest.raises(TopicMissingError, match="'ordres'"):
        queries.read(way, "orders", "ordres")
    # The failed queries acquired nothing.
    assert queries.read(way, "orders") == 5


@both_ways
def test_missing_topic_is_a_warning_if_loss_is_allowed(
    share_broker, queries, short_timeouts, caplog, way
):
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)

    assert queries.read(way, "orders", "bills", **SKIP) == 5
    warnings = [r.getMessage() for r in caplog.records if "missing" in r.getMessage()]
    assert len(warnings) == 1
    assert "bills" in warnings[0]


def test_missing_topic_is_read_once_it_exists(share_broker, queries, short_timeouts):
    share_broker.create_topic("orders")
    query = queries.stream("orders", "bills", **SKIP)
    share_broker.create_topic("bills")
    share_broker.produce("bills", [b"x"] * 3)

    until_true(lambda: query.report_latest_offset()["position"] == 3)
    query.stop()


def test_topic_created_a_moment_later_is_not_missing(share_broker, queries):
    share_broker.create_topic("orders")
    make = threading.Timer(0.7, share_broker.create_topic, ["bills"])
    make.start()
    query = queries.stream("orders", "bills")
    make.join()
    share_broker.produce("bills", [b"x"] * 3)

    until_true(lambda: query.report_latest_offset()["position"] == 3)


# Topics by a pattern.

PATTERN = {"subscribePattern": "orders[.].*"}


@ways_on("any_kafka")
def test_topics_that_match_a_pattern_are_read(any_kafka, acl_queries, way):
    prefix = f"orders-{uuid.uuid4().hex[:8]}"
    for name in (f"{prefix}.eu", f"{prefix}.us", f"old.{prefix}.eu"):
        any_kafka.admin.create_topic(name=name)
        any_kafka.admin.produce(name, [b"x"] * 3)

    pattern = {"subscribePattern": f"{prefix}[.].*"}
    assert acl_queries.read(way, **pattern) == 6


def test_topic_that_matches_later_is_read(share_broker, queries, short_timeouts):
    share_broker.create_topic("orders.eu")
    query = queries.stream(**PATTERN)
    share_broker.create_topic("orders.us")
    share_broker.produce("orders.us", [b"x"] * 3)

    until_true(lambda: query.report_latest_offset()["position"] == 3)


def test_pattern_without_a_topic_waits_for_one_if_loss_is_allowed(
    share_broker, queries, short_timeouts
):
    with pytest.raises(TopicMissingError, match="no topic matches subscribePattern"):
        queries.stream(**PATTERN)
    query = queries.stream(**PATTERN, **SKIP)
    share_broker.create_topic("orders.eu")
    share_broker.produce("orders.eu", [b"x"] * 3)

    until_true(lambda: query.report_latest_offset()["position"] == 3)


def test_deleted_topic_of_a_pattern_ends_the_query(
    share_broker, queries, short_timeouts
):
    share_broker.create_topic("orders.eu")
    share_broker.create_topic("orders.us")
    query = queries.stream(**PATTERN)
    share_broker.delete_topic("orders.us")

    with pytest.raises(TopicMissingError, match=r"topic 'orders.us' was deleted"):
        poll_until_error(query, at=0)


# Forbidden topics and groups, on both brokers.

FORBIDDING = {
    "describe only": lambda admin, topic: admin.hide_records(topic),
    "nothing": lambda admin, topic: admin.deny_topic(topic),
}
ALLOWING = {
    "describe only": lambda admin, topic: admin.show_records(topic),
    "nothing": lambda admin, topic: admin.allow_topic(topic),
}


@pytest.mark.parametrize("what", FORBIDDING)
@ways_on("any_kafka")
def test_forbidden_topic_is_named_in_the_error(any_kafka, acl_queries, what, way):
    admin = any_kafka.admin
    orders, secret = admin.create_topic(), admin.create_topic()
    admin.produce(orders, [b"x"] * 5)
    FORBIDDING[what](admin, secret)

    with pytest.raises(AuthorizationError, match=f"'{secret}' is not readable"):
        acl_queries.read(way, orders, secret, **SKIP)
    ALLOWING[what](admin, secret)
    assert acl_queries.read(way, orders, secret) == 5


@pytest.mark.parametrize("what", FORBIDDING)
def test_topic_forbidden_during_a_query_ends_it(any_kafka, acl_queries, what):
    admin = any_kafka.admin
    secret = admin.create_topic()
    admin.produce(secret, [b"x"] * 5)
    query = acl_queries.stream(secret, **SKIP)
    until_true(lambda: query.report_latest_offset()["position"] == 5, within=30)
    FORBIDDING[what](admin, secret)
    try:
        with pytest.raises(AuthorizationError, match=f"'{secret}' is not readable"):
            poll_until_error(query, at=5)
    finally:
        ALLOWING[what](admin, secret)


@ways_on("any_kafka")
def test_forbidden_group_is_an_authorization_error(any_kafka, acl_queries, way):
    admin = any_kafka.admin
    orders = admin.create_topic()
    admin.produce(orders, [b"x"] * 5)
    group = acl_queries.group
    with (
        admin.denied_group(group),
        pytest.raises(AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"),
    ):
        acl_queries.read(way, orders, **SKIP)


# Topics that are deleted or recreated.


def test_deleted_topic_ends_the_query(share_broker, queries, short_timeouts):
    for name in ("orders", "bills"):
        share_broker.create_topic(name)
    query = queries.stream("orders", "bills")
    share_broker.delete_topic("bills")

    with pytest.raises(TopicMissingError, match="topic 'bills' was deleted"):
        poll_until_error(query, at=0)


def test_deleted_topic_is_a_warning_if_loss_is_allowed(
    share_broker, queries, short_timeouts, caplog
):
    for name in ("orders", "bills"):
        share_broker.create_topic(name)
    query = queries.stream("orders", "bills", **SKIP)
    share_broker.delete_topic("bills")

    def warnings():
        return sum("missing" in each.getMessage() for each in caplog.records)

    until_true(lambda: warnings() == 1)
    share_broker.produce("orders", [b"x"] * 3)
    until_true(lambda: query.report_latest_offset()["position"] == 3)
    # The topics are described several times more.
    wait_for_requests(share_broker, "Metadata", 4)
    assert warnings() == 1


@both_ways
def test_topic_deleted_before_the_end_fails_the_query(
    share_broker, queries, short_timeouts, way, monkeypatch
):
    # Topics are described at the end only.
    monkeypatch.setattr(watch, "REFRESH_INTERVAL", 60)
    share_broker.create_topic("orders")
    share_broker.create_topic("bills")
    share_broker.produce("orders", [b"x"] * 5)

    def delete(driver):
        until_true(lambda: driver.target.is_reached)
        share_broker.delete_topic("bills")

    queries.on_start = delete
    with pytest.raises(TopicMissingError, match="topic 'bills' was deleted"):
        queries.read(way, "orders", "bills")


def test_records_acquired_before_a_topic_was_deleted_are_read_first(
    share_broker, queries, short_timeouts
):
    share_broker.create_topic("orders")
    share_broker.create_topic("bills")
    share_broker.produce("orders", [b"x"] * 5)
    query = queries.stream("orders", "bills")
    query.end_when_drained()
    until_true(lambda: query.report_latest_offset()["position"] == 5)
    share_broker.delete_topic("bills")

    end = query.latest_offset(
        query.initial_offset(), max_offsets=None, min_offsets=None
    )
    assert end["position"] == 5
    with pytest.raises(TopicMissingError, match="topic 'bills' was deleted"):
        query.latest_offset(end, max_offsets=None, min_offsets=None)


def test_recreated_topic_ends_the_query(share_broker, queries, short_timeouts):
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)
    query = queries.stream("orders")
    until_true(lambda: query.report_latest_offset()["position"] == 5)
    share_broker.delete_topic("orders")
    share_broker.create_topic("orders")

    with pytest.raises(
        LedgerMismatchError,
        match="topic orders was deleted and created.*orders-0 offsets 0 to 4",
    ):
        poll_until_error(query, at=5)


def ledger_offsets(driver):
    return [
        (each.topic_id, offset)
        for each in driver.ranges_between(driver.begin, driver.end)
        for offset in range(each.first_offset, each.last_offset + 1)
    ]


def test_recreated_topic_is_read_if_loss_is_allowed(
    share_broker, queries, short_timeouts, caplog
):
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 9)
    query = queries.stream("orders", **SKIP)
    driver = queries.drivers[-1]
    until_true(lambda: query.report_latest_offset()["position"] == 9)
    query.commit({"position": 4})
    share_broker.delete_topic("orders")
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 6)
    until_true(lambda: query.report_latest_offset()["position"] == 15, within=20)
    share_broker.produce("orders", [b"x"] * 2)
    until_true(lambda: query.report_latest_offset()["position"] == 17, within=20)
    found = ledger_offsets(driver)

    (old, new) = dict.fromkeys(topic_id for topic_id, _ in found)
    assert found == [
        *((old, offset) for offset in range(4, 9)),
        *((new, offset) for offset in range(8)),
    ]
    assert_one_warning(caplog, queries.group, old, "orders-0 offsets 4 to 8")
    query.commit({"position": 17})
    query.stop()

    again = queries.stream("orders", **SKIP)
    share_broker.produce("orders", [b"x"])
    until_true(lambda: again.report_latest_offset()["position"] == 18)
    assert ledger_offsets(queries.drivers[-1]) == [(new, 8)]


def assert_one_warning(caplog, group, old_id, records):
    (warning,) = [
        each.getMessage()
        for each in caplog.records
        if "deleted and created again" in each.getMessage()
    ]
    old = str(uuid.UUID(bytes=old_id))
    for part in ("topic=orders", f"group={group}", old, records, "advice="):
        assert part in warning


def test_topic_recreated_before_the_start_is_a_warning_if_loss_is_allowed(
    share_broker, queries, short_timeouts, caplog
):
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 9)
    query = queries.stream("orders", **SKIP)
    until_true(lambda: query.report_latest_offset()["position"] == 9)
    old = queries.drivers[-1].ranges_between(0, 9)[0].topic_id
    query.stop()
    share_broker.delete_topic("orders")
    share_broker.create_topic("orders")

    queries.stream("orders", **SKIP)

    assert_one_warning(caplog, queries.group, old, "orders-0 offsets 0 to 8")


def replace_orders(broker):
    broker.delete_topic("orders")
    broker.create_topic("orders")
    broker.produce("orders", [b"x"] * 7)


@both_ways
def test_target_includes_a_recreated_topic(
    share_broker, queries, short_timeouts, way, monkeypatch
):
    # Before its end a query must not see the new topic without records.
    monkeypatch.setattr(watch, "REFRESH_INTERVAL", 60)
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)

    def replace(driver):
        until_true(lambda: driver.target.is_reached)
        replace_orders(share_broker)

    queries.on_start = replace
    assert queries.read(way, "orders", idleTimeout="10s", **SKIP) == 12


@both_ways
def test_target_includes_a_topic_that_is_recreated_after_its_lag_was_read(
    share_broker, queries, short_timeouts, way, monkeypatch
):
    monkeypatch.setattr(watch, "REFRESH_INTERVAL", 60)
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)

    async def replace(response, context):
        await to_thread.run_sync(replace_orders, share_broker)
        return response

    def replace_later(driver):
        until_true(lambda: driver.target.is_reached)
        share_broker.faults.on("DescribeShareGroupOffsets").change(replace)

    queries.on_start = replace_later
    assert queries.read(way, "orders", idleTimeout="10s", **SKIP) == 12


# Partitions that are added, or have no leader.


@both_ways
def test_added_partition_is_read_before_the_end(
    share_broker, queries, short_timeouts, way, monkeypatch
):
    monkeypatch.setattr(watch, "REFRESH_INTERVAL", 60)
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)
    admin = confluent.AdminClient({"bootstrap.servers": share_broker.bootstrap_servers})

    def add(driver):
        until_true(lambda: driver.target.is_reached)
        added = confluent.NewPartitions("orders", 2)
        admin.create_partitions([added])["orders"].result(10)
        share_broker.produce("orders", [b"x"] * 4, partition=1)

    queries.on_start = add
    assert queries.read(way, "orders", idleTimeout="10s") == 9


@pytest.fixture
def leaderless(any_kafka3, tmp_path):
    """A topic of two partitions on two brokers; the second one is down."""
    admin, cluster = any_kafka3.admin, any_kafka3.cluster
    made = Queries(any_kafka3.bootstrap_servers, tmp_path)
    made.topic = admin.create_topic(partitions=2)
    while admin.leader(made.topic, 0) == admin.leader(made.topic, 1):
        made.topic = admin.create_topic(partitions=2)
    for partition in (0, 1):
        admin.produce(made.topic, [b"x"] * 5, partition=partition)
    down = admin.leader(made.topic, 1)
    cluster.kill(down)
    made.restart = lambda: cluster.start_broker(down)
    yield made
    for driver in made.drivers:
        driver.stop()
    if down not in cluster.running:
        cluster.start_broker(down)


@ways_on("any_kafka3")
def test_partition_without_a_leader_fails_the_query(leaderless, short_timeouts, way):
    with pytest.raises(ConnectionFailedError, match=f"{leaderless.topic}-1: no leader"):
        leaderless.read(way, leaderless.topic, idleTimeout="1s")


@ways_on("any_kafka3")
def test_partition_is_awaited_until_its_leader_returns(leaderless, short_timeouts, way):
    back = threading.Timer(2, leaderless.restart)
    back.start()

    assert leaderless.read(way, leaderless.topic, idleTimeout="60s") == 10
    back.join()


@both_ways
def test_fetch_error_fails_the_query(share_broker, queries, way):
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)
    fetches = share_broker.faults.on("ShareFetch", times=None)
    fetches.refuse("CORRUPT_MESSAGE", each=True)

    with pytest.raises(BrokerError, match="orders-0.*CORRUPT_MESSAGE"):
        queries.read(way, "orders", idleTimeout="1s")


@both_ways
def test_query_without_assigned_partitions_fails(share_broker, queries, way):
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)
    slow = {"share.assignment.interval.ms": "15000"}
    share_broker.set_group_config(queries.group, slow)

    with pytest.raises(ConnectionFailedError, match="assigned no partition"):
        queries.read(way, "orders", idleTimeout="1s")


@both_ways
def test_query_that_cannot_join_fails(share_broker, queries, way):
    share_broker.faults.on("DescribeConfigs", times=None).cut()
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"x"] * 5)

    with pytest.raises(ConnectionFailedError, match="DescribeConfigs"):
        queries.read(way, "orders", idleTimeout="1s")
