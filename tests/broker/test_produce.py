"""Produce, DeleteRecords, ListOffsets, on the embedded broker and on a real Kafka."""

import time
import uuid

import pytest

from sharecons.testing.broker.acls import Resource
from sharecons.testing.broker.codec import Header
from sharecons.testing.broker.handlers import produce
from tests.broker.either import (
    ClockedContext,
    Embedded,
)
from tests.broker.log_requests import Place, Talk, new_topic, offsets_in
from tests.broker.messages import make_request
from tests.broker.raw_batches import (
    NOW,
    BatchHead,
    batch,
    patched,
    sealed,
    transactional,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
MAX = 2**31 - 1


@pytest.mark.parametrize("version", range(3, 14))
def test_records_are_written_in_every_version(talk, version):
    place = new_topic(talk.either)

    reported = [talk.produce(place, batch("a", "b"), version) for _ in range(2)]

    assert [0, 2] == [each.base_offset for each in reported]
    assert [None, None] == [each.log_append_time for each in reported]
    head = BatchHead(talk.read(place, 2).records)
    assert (2, True, 2) == (head.base_offset, head.is_sound, head.record_count)


DAMAGED = {
    "nothing": (b"", "invalid_record", None),
    "two batches": (batch() * 2, "invalid_record", None),
    "cut off": (batch()[:-1], "invalid_record", None),
    "old format": (patched(batch(), 16, 1), "invalid_record", None),
    "unknown format": (
        patched(batch(), 16, 3),
        "corrupt_message",
        "Invalid magic found in record: 3",
    ),
    "length too short": (
        patched(batch(), 8, 0, 0, 0, 5),
        "corrupt_message",
        "Record size 5 is less than the minimum record overhead (14)",
    ),
    "wrong checksum": (patched(batch(), 64, 0xFF), "corrupt_message", None),
    "base offset": (batch(base_offset=5), "invalid_record", None),
    "record count": (batch(record_count=0), "invalid_record", None),
    "last offset": (batch(last_offset_delta=5), "invalid_record", None),
    "control": (batch(attributes=0x20), "invalid_record", None),
    "no sequence": (batch(producer=(5, 0, -1)), "invalid_record", None),
    "unknown codec": (batch(attributes=6), "unknown_server_error", None),
    "not folded": (batch(attributes=1), "unknown_server_error", None),
}


@pytest.mark.parametrize(
    ("records", "error", "message"), DAMAGED.values(), ids=DAMAGED.keys()
)
def test_invalid_batches_are_rejected(talk, records, error, message):
    place = new_topic(talk.either)

    reported = talk.produce(place, records)

    assert (error, message) == (reported.error_code.name, reported.error_message)
    assert -1 == reported.base_offset
    assert 0 == talk.produce_result(place, batch())


def test_unknown_topics_and_partitions_have_their_own_errors(talk):
    place = new_topic(talk.either)
    nowhere = Place(f"nowhere-{uuid.uuid4().hex[:8]}", uuid.uuid4())

    assert "unknown_topic_or_partition" == talk.produce_result(
        place, batch(), partition=1
    )
    assert "unknown_topic_or_partition" == talk.produce_result(nowhere, batch(), 12)
    assert "unknown_topic_id" == talk.produce_result(nowhere, batch())


def test_invalid_acks_are_rejected(talk):
    place = new_topic(talk.either)

    assert "invalid_required_acks" == talk.produce_result(place, batch(), acks=2)
    assert 0 == talk.produce_result(place, batch(), acks=1)


def test_zstd_in_old_versions_is_rejected(talk):
    place = new_topic(talk.either)

    error = talk.produce_result(place, batch(attributes=4), 6)

    assert "unsupported_compression_type" == error


def test_too_large_batch_is_rejected(talk):
    place = new_topic(talk.either, config={"max.message.bytes": "200"})

    assert "message_too_large" == talk.produce_result(place, batch("x" * 200))
    assert 0 == talk.produce_result(place, batch("x" * 100))


def test_log_append_time_is_returned(talk):
    place = new_topic(talk.either, config={"message.timestamp.type": "LogAppendTime"})

    reported = talk.produce(place, batch(timestamp=1000))

    assert reported.log_append_time is not None
    assert abs(reported.log_append_time.timestamp() - time.time()) < 60
    head = BatchHead(talk.read(place).records)
    assert reported.log_append_time.timestamp() * 1000 == head.max_timestamp
    assert (0x08, True) == (head.attributes, head.is_sound)


def test_future_records_are_listed_as_record_errors(talk):
    place = new_topic(talk.either)

    reported = talk.produce(place, batch("a", "b", times=[NOW, NOW + 2 * 3_600_000]))

    assert "invalid_timestamp" == reported.error_code.name
    assert [1] == [each.batch_index for each in reported.record_errors]
    assert 0 == reported.log_start_offset
    assert reported.error_message.startswith("One or more records have been rejected")


def test_compacted_topic_rejects_records_without_key(talk):
    place = new_topic(talk.either, config={"cleanup.policy": "compact"})

    reported = talk.produce(place, batch("a", "b", keys=[b"k", None]))

    assert "invalid_record" == reported.error_code.name
    assert [1] == [each.batch_index for each in reported.record_errors]
    assert 0 == talk.produce_result(place, batch("a", keys=[b""]))


def test_acks_all_requires_min_insync_replicas():
    embedded = Embedded(brokers=2, settings={"min.insync.replicas": "2"})
    embedded.cluster.add_topic("t", [[1, 2]], {})
    talk, place = (
        Talk(embedded),
        Place("t", embedded.cluster.topics.by_name("t").topic_id),
    )

    assert 0 == talk.produce_result(place, batch())
    embedded.cluster.broker_stopped(2)
    assert "not_enough_replicas" == talk.produce_result(place, batch())
    assert 1 == talk.produce_result(place, batch(), acks=1)


def test_idempotent_producer_writes_each_batch_once(talk):
    place = new_topic(talk.either)
    producer_id, epoch = talk.producer()

    def send(sequence, *values, epoch=epoch):
        producer = producer_id, epoch, sequence
        return talk.produce_result(place, batch(*values, producer=producer))

    assert [0, 0, 2] == [send(0, "a", "b"), send(0, "a", "b"), send(2, "c")]
    assert "out_of_order_sequence_number" == send(5, "d")
    assert "out_of_order_sequence_number" == send(1, "b")
    assert "out_of_order_sequence_number" == send(3, "d", epoch=1)
    assert 3 == send(0, "d", epoch=1)
    assert "invalid_producer_epoch" == send(3, "d")


def test_sequences_wrap_after_the_maximum(talk):
    place = new_topic(talk.either)
    producer_id, epoch = talk.producer()

    def send(sequence, *values):
        producer = producer_id, epoch, sequence
        return talk.produce_result(place, batch(*values, producer=producer))

    assert [0, 3, 0] == [
        send(MAX - 1, "a", "b", "c"),
        send(1, "d"),
        send(MAX - 1, "a", "b", "c"),
    ]


def test_transactional_records_need_a_known_producer(talk):
    place = new_topic(talk.either)
    talk.begin()  # so that the transaction coordinator has loaded
    stray = transactional(987654321, 0, 0)

    error = talk.produce_result(place, stray)
    assert "transactional_id_authorization_failed" == error
    error = talk.produce_result(place, stray, tx=f"unknown-{uuid.uuid4().hex}")
    assert "invalid_producer_id_mapping" == error


def test_denied_topic_is_not_written():
    embedded = Embedded()
    talk, place = Talk(embedded), new_topic(embedded)
    embedded.deny(Resource.TOPIC, place.name)

    assert "topic_authorization_failed" == talk.produce_result(place, batch())
    assert "topic_authorization_failed" == talk.produce_result(place, batch(), 12)
    assert "topic_authorization_failed" == talk.read(place).error_code.name
    assert "topic_authorization_failed" == talk.look_up(place, LATEST).error_code.name
    assert "topic_authorization_failed" == talk.delete(place, 0)


def test_wrong_broker_returns_the_leader():
    embedded = Embedded(brokers=2)
    embedded.cluster.add_topic("t", [[2, 1]], {})
    topic_id = embedded.cluster.topics.by_name("t").topic_id

    response = embedded.request(
        "produce",
        13,
        acks=-1,
        timeout=None,
        topic_data=[
            {
                "topic_id": topic_id,
                "partition_data": [{"index": 0, "records": batch()}],
            }
        ],
    )

    (reported,) = response.responses[0].partition_responses
    assert "not_leader_or_follower" == reported.error_code.name
    assert (2, 0) == (
        reported.current_leader.leader_id,
        reported.current_leader.leader_epoch,
    )
    assert [(2, 9093)] == [
        (node.node_id, node.port) for node in response.node_endpoints
    ]


class Connection:
    """A client's connection that the broker can close."""

    now = 0.0
    was_cut = False

    def cut(self):
        self.was_cut = True


@pytest.mark.parametrize(("partition", "cut"), [(0, False), (1, True)])
def test_acks_0_has_no_response_and_errors_close_the_connection(partition, cut):
    embedded, connection = Embedded(), Connection()
    partitions = [{"index": partition, "records": batch()}]
    topic = {"topic_id": new_topic(embedded).topic_id, "partition_data": partitions}
    request = make_request("produce", 13, acks=0, topic_data=[topic])
    header = Header(0, 13, 1, "test")

    work = produce.handle(
        request, ClockedContext(header, embedded.cluster, 1, connection)
    )
    with pytest.raises(StopIteration) as done:
        work.send(None)

    assert done.value.value is None
    assert cut is connection.was_cut


@pytest.mark.parametrize("version", range(1, 11))
def test_ends_are_listed_in_every_version(talk, version):
    place = new_topic(talk.either)
    talk.produce(place, batch("a", "b"))

    assert 2 == talk.look_up(place, LATEST, version).offset
    assert 0 == talk.look_up(place, EARLIEST, version).offset


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9)],
)
def test_newer_timestamps_in_old_versions_are_rejected(talk, timestamp, since):
    place = new_topic(talk.either)

    before = talk.look_up(place, timestamp, since - 1)
    assert "unsupported_version" == before.error_code.name
    assert "none" == talk.look_up(place, timestamp, since).error_code.name


def test_empty_log_has_ends_and_no_timestamps(talk):
    place = new_topic(talk.either)

    def found(timestamp):
        response = talk.look_up(place, timestamp)
        return response.offset, response.timestamp, response.leader_epoch

    assert [(0, -1, 0)] * 3 == [*map(found, (LATEST, EARLIEST, EARLIEST_LOCAL))]
    assert [(-1, -1, -1)] * 3 == [*map(found, (MAX_TIMESTAMP, LATEST_TIERED, 0))]


def test_timestamp_lookup_returns_the_record(talk):
    place = new_topic(talk.either)
    t = 1_700_000_000_000
    talk.produce(place, batch("a", "b", "c", times=[t, t + 50, t + 20]))
    talk.produce(place, batch("d", timestamp=t + 30))

    def found(timestamp):
        response = talk.look_up(place, timestamp)
        return response.offset, response.timestamp - t, response.leader_epoch

    assert [(0, 0, 0), (1, 50, 0), (1, 50, 0)] == [*map(found, (t, t + 1, t + 50))]
    assert (1, 50, 0) == found(MAX_TIMESTAMP)
    assert -1 == talk.look_up(place, t + 51).offset


def test_duplicate_partition_is_an_invalid_request(talk):
    place = new_topic(talk.either)
    twice = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": LATEST}

    response = talk.request(
        "list_offsets",
        9,
        replica_id=-1,
        isolation_level=0,
        topics=[{"name": place.name, "partitions": [twice, twice]}],
    )

    errors = {each.error_code.name for each in response.topics[0].partitions}
    assert {"invalid_request"} == errors


def test_deleted_records_move_the_start_of_the_log(talk):
    place = new_topic(talk.either)
    for _ in range(3):
        talk.produce(place, batch("a", "b"))

    assert [3, 3] == [talk.delete(place, 3), talk.delete(place, 1)]
    assert ["offset_out_of_range"] * 2 == [talk.delete(place, o) for o in (-2, 7)]
    assert 3 == talk.look_up(place, EARLIEST).offset
    assert [2, 4] == offsets_in(talk.read(place, 3))
    assert "offset_out_of_range" == talk.read(place, 2).error_code.name
    assert 6 == talk.delete(place, -1)
    assert 6 == talk.look_up(place, EARLIEST).offset


def test_invalid_record_deletions_are_rejected(talk):
    place = new_topic(talk.either)
    compacted = new_topic(talk.either, config={"cleanup.policy": "compact"})
    nowhere = Place(f"nowhere-{uuid.uuid4().hex[:8]}", None)

    assert "unknown_topic_or_partition" == talk.delete(place, 0, partition=1)
    assert "unknown_topic_or_partition" == talk.delete(nowhere, 0)
    assert "policy_violation" == talk.delete(compacted, 0)


def test_undecodable_records_have_no_timestamps():
    embedded = Embedded()
    talk, place = Talk(embedded), new_topic(embedded)
    content = batch("abc")
    # One record with a length greater than the batch, and a valid CRC.
    talk.produce(place, sealed(patched(content, 61, 0x7E)))

    assert -1 == talk.look_up(place, 0).offset
    assert -1 == talk.look_up(place, MAX_TIMESTAMP).offset
    assert 1 == talk.look_up(place, LATEST).offset
