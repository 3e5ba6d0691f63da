"""The partitions of a topic: partitions without a leader, and new partitions."""

from sharecons.protocol.codes import Code
from sharecons.protocol.produce.batches import PendingRecord
from sharecons.protocol.produce.producer import ProducerMachine
from sharecons.protocol.produce.topics import METADATA_MAX_AGE
from sharecons.record import TopicPartition
from tests.protocol.produce.test_producer import Harness


def test_records_without_a_key_avoid_partitions_without_a_leader() -> None:
    harness = Harness(partitions=3)
    for partition in (0, 2):
        harness.brokers.leaders[TopicPartition("orders", partition)] = -1
    for number in range(10):
        harness.add(b"%d" % number)

    harness.run(seconds=1.0)

    assert 10 == len(harness.brokers.logs[TopicPartition("orders", 1)])


def test_records_without_a_key_begin_at_the_first_partition() -> None:
    harness = Harness(partitions=3)
    harness.producer = ProducerMachine(first_partition=8)
    harness.add(b"a")

    harness.run()

    assert [b"a"] == harness.brokers.logs[TopicPartition("orders", 2)]


def test_new_partitions_are_used_once_the_metadata_is_old() -> None:
    harness = Harness(partitions=1)
    harness.add(b"a")
    harness.run()
    harness.brokers.create("orders", 2)

    harness.now += METADATA_MAX_AGE - 1
    harness.add(b"b", key=b"2")
    harness.run()
    harness.now += 2
    lookups = len(harness.brokers.requests) - len(harness.produce_requests())
    for _ in range(20):
        harness.add(b"c")
        harness.run()

    assert harness.brokers.logs[TopicPartition("orders", 1)]
    after = len(harness.brokers.requests) - len(harness.produce_requests())
    assert lookups + 1 == after


def test_topic_that_was_missing_once_is_not_the_error_of_later_records() -> None:
    harness = Harness()
    harness.brokers.topic_errors["orders"] = Code.UNKNOWN_TOPIC_OR_PARTITION
    record: PendingRecord = harness.add(b"a")
    harness.run(seconds=1.0)
    del harness.brokers.topic_errors["orders"]
    harness.brokers.errors[TopicPartition("orders", 0)] = Code.NOT_ENOUGH_REPLICAS

    harness.run(seconds=60.0)

    assert record.was_sent
    assert [(b"a", "RequestTimedOutError")] == harness.outcomes()
