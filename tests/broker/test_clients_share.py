"""librdkafka's ShareConsumer, on a real Kafka and on the embedded one."""

from collections import Counter
from contextlib import ExitStack, closing, contextmanager

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from tests.broker.clients import TIMEOUT, new_name, poll_until

pytestmark = pytest.mark.slow("clients poll over sockets in real time")

POLL = 0.2
LOCK = 1000  # milliseconds, the minimum of the test brokers


@pytest.fixture
def topic(any_kafka):
    return any_kafka.admin.create_topic()


@pytest.fixture
def group(any_kafka):
    """Return a group that starts at the earliest offset.

    Its heartbeat interval is short: the second heartbeat returns the partitions.
    """
    group = new_name("group")
    config = {
        "share.auto.offset.reset": "earliest",
        "share.heartbeat.interval.ms": 100,
        "share.assignment.interval.ms": 0,
    }
    any_kafka.admin.set_group_config(group, config)
    return group


@pytest.fixture
def member(any_kafka, topic, group):
    """Run a member of the group, closed at the end of the block."""

    @contextmanager
    def member(mode="implicit", **config):
        named = {name.replace("_", "."): value for name, value in config.items()}
        settings = {
            "bootstrap.servers": any_kafka.bootstrap_servers,
            "group.id": group,
            "share.acknowledgement.mode": mode,
            **named,
        }
        with closing(ShareConsumer(settings)) as consumer:
            consumer.subscribe([topic])
            yield consumer

    return member


def take(consumer, count, within=TIMEOUT):
    """Poll until `count` records have arrived; return them."""
    records = []
    poll = lambda: records.extend(consumer.poll(POLL))  # noqa: E731
    poll_until(f"{count} records", lambda: len(records) >= count, poll, within)
    return records


def values(records):
    return sorted(int(record.value()) for record in records)


def test_next_poll_accepts_previous_records(any_kafka, topic, member):
    any_kafka.admin.produce(topic, ["0", "1"])
    with member() as consumer:
        take(consumer, 2)
        assert not len(consumer.poll(POLL))
        any_kafka.admin.produce(topic, ["2"])
        take(consumer, 1)

    # Closing accepts nothing: the records of the last poll are released.
    with member() as consumer:
        assert [2] == values(take(consumer, 1))
        assert not len(consumer.poll(POLL))


def test_rejected_records_are_archived_and_released_ones_redelivered(
    any_kafka, topic, member
):
    any_kafka.admin.produce(topic, map(str, range(9)))
    kinds = [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT]
    with member("explicit") as consumer:
        for number, record in enumerate(take(consumer, 9)):
            consumer.acknowledge(record, kinds[number % 3])
        results = consumer.commit_sync(TIMEOUT)
        again = take(consumer, 3)
        for record in again:
            consumer.acknowledge(record)
        consumer.commit_sync(TIMEOUT)
        assert not len(consumer.poll(POLL))

    assert [None] == list(results.values())
    assert [1, 4, 7] == values(again)


def test_records_of_closed_member_are_redelivered_immediately(any_kafka, topic, member):
    any_kafka.admin.produce(topic, map(str, range(20)))
    with member("explicit") as one:
        take(one, 20)
    with member() as other:
        records = take(other, 20, within=10)  # a third of the lock duration

    assert list(range(20)) == values(records)


def test_record_with_expired_lock_goes_to_another_member(
    any_kafka, topic, group, member
):
    config = {"share.record.lock.duration.ms": LOCK}
    any_kafka.admin.set_group_config(group, config)
    any_kafka.admin.produce(topic, ["0"])
    with member("explicit") as holder, member() as other:
        (held,) = take(holder, 1)
        (record,) = take(other, 1)

        assert held.offset() == record.offset()


def test_members_share_one_partition(any_kafka, topic, member):
    seen, shares = Counter(), [0, 0, 0]
    with ExitStack() as stack:
        members = [stack.enter_context(member(max_poll_records=50)) for _ in range(3)]

        def turn():
            for number, each in enumerate(members):
                records = list(each.poll(0.05))
                shares[number] += len(records)
                seen.update(record.offset() for record in records)

        any_kafka.admin.produce(topic, map(str, range(3_000)), batch_num_messages=50)
        poll_until("all have come", lambda: len(seen) == 3_000, turn)

    assert {1} == set(seen.values())
    assert all(shares)
