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


def recreated(harness: Harness, partitions: int) -> None:
    """Delete the topic, and create it with other partitions."""
    harness.brokers.delete("orders")
    harness.brokers.create("orders", partitions)


def test_record_for_a_deleted_topic_is_not_written() -> None:
    harness = Harness()
    harness.add(b"a")
    harness.run()
    harness.brokers.delete("orders")
    record = harness.add(b"b")

    harness.run(seconds=60.0)

    assert not record.was_sent
    assert [(b"a", 0), (b"b", "UNKNOWN_TOPIC_OR_PARTITION")] == harness.outcomes()


def test_record_with_a_lost_response_before_the_deletion_might_be_written() -> None:
    harness = Harness()
    record = harness.add(b"a")
    harness.lose_batch(handled=True)
    harness.brokers.delete("orders")

    harness.run(seconds=60.0)

    assert record.was_sent
    assert [(b"a", "RequestTimedOutError")] == harness.outcomes()


def test_records_go_to_the_partitions_of_a_new_topic_of_the_same_name() -> None:
    harness = Harness(partitions=3)
    for number in range(3):
        harness.add(b"%d" % number, partition=number)
    harness.run()
    recreated(harness, 1)
    for number in range(20):
        harness.add(b"key", key=b"%d" % number)
        harness.add(b"none")

    harness.run(seconds=5.0)

    log = harness.brokers.logs[TopicPartition("orders", 0)]
    assert (20, 20) == (log.count(b"key"), log.count(b"none"))
    assert 40 == len(log)


def test_record_for_a_partition_that_the_new_topic_does_not_have_is_rejected() -> None:
    harness = Harness(partitions=3)
    harness.add(b"a", partition=2)
    harness.run()
    recreated(harness, 1)
    harness.add(b"b", partition=2)

    harness.run(seconds=5.0)

    assert [(b"a", 0), (b"b", "UNKNOWN_TOPIC_OR_PARTITION")] == harness.outcomes()


def test_records_stay_in_a_partition_that_metadata_does_not_have_yet() -> None:
    harness = Harness(partitions=3)
    harness.add(b"a", partition=2)
    harness.run()
    where = TopicPartition("orders", 2)
    leader = harness.brokers.leaders.pop(where)
    record = harness.add(b"b", partition=2)

    harness.run(seconds=1.0)
    assert [(b"a", 0)] == harness.outcomes()
    harness.brokers.leaders[where] = leader
    harness.run(seconds=5.0)

    assert not record.was_sent
    assert [(b"b", 1)] == harness.outcomes()
