"""Requests of transactional producers, on the embedded broker and on a real Kafka."""

import uuid

import pytest

from sharecons.testing.broker.acls import Operation, Resource
from sharecons.testing.broker.coordinators import TRANSACTION
from tests.broker.either import Embedded
from tests.broker.log_requests import Talk, new_topic, offsets_in
from tests.broker.raw_batches import NOW, BatchHead, batch, batches_in, transactional

MARKER = 0x30
COMMIT, ABORT = 1, 0


def later(producer, epochs=1):
    producer_id, epoch = producer
    return producer_id, epoch + epochs


def add(talk, tx, producer, places, version=3):
    """Add partitions; return the error of each."""
    response = talk.request(
        "add_partitions_to_txn",
        version,
        v3_and_below_transactional_id=tx,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[
            {"name": name, "partitions": partitions} for name, *partitions in places
        ],
    )
    return {
        (topic.name, each.partition_index): each.partition_error_code.name
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }


def add_group(talk, tx, producer, group, version=3):
    response = talk.when_ready(
        lambda: talk.request(
            "add_offsets_to_txn",
            version,
            transactional_id=tx,
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id=group,
        )
    )
    return response.error_code.name


def commit_offset(talk, tx, producer, group, place, offset, version):
    partition = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
    }
    response = talk.request(
        "txn_offset_commit",
        version,
        transactional_id=tx,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        generation_id=-1,
        member_id="",
        topics=[{"name": place.name, "partitions": [partition]}],
    )
    return response.topics[0].partitions[0].error_code.name


def committed_offset(talk, group, place, stable=True):
    topics = [{"name": place.name, "partition_indexes": [0]}]
    response = talk.request(
        "offset_fetch", 7, group_id=group, topics=topics, require_stable=stable
    )
    found = response.topics[0].partitions[0]
    return found.error_code.name if found.error_code else found.committed_offset


def until_equal(talk, expected, read):
    """Call `read` until it returns the expected value.

    A real coordinator makes some changes after its response.
    """
    for _ in range(100):
        found = read()
        if found == expected:
            return
        talk.either.sleep(0.05)
    assert expected == found


def markers(talk, place):
    """Return the markers in a log: kind, producer id and epoch."""
    heads, _ = batches_in(talk.read(place).records)
    return [
        (head.body[8], head.producer_id, head.producer_epoch)
        for head in heads
        if head.attributes == MARKER
    ]


@pytest.mark.parametrize(("committed", "kind"), [(True, COMMIT), (False, ABORT)])
def test_version_2_transaction_begins_with_a_write(talk, committed, kind):
    place = new_topic(talk.either)
    tx, producer = talk.begin()

    assert 0 == talk.produce_result(place, transactional(*producer, 0, "a", "b"), tx=tx)
    assert 2 == talk.produce_result(place, transactional(*producer, 2), tx=tx)
    assert later(producer) == talk.end(tx, producer, committed)

    until_equal(talk, [(kind, *later(producer))], lambda: markers(talk, place))
    assert "invalid_producer_epoch" == talk.produce_result(
        place, transactional(*producer, 3), tx=tx
    )
    write = transactional(*later(producer), 0)
    # The coordinator writes the markers before it ends the transaction.
    until_equal(talk, 4, lambda: talk.produce_result(place, write, 12, tx=tx))


@pytest.mark.parametrize(("committed", "kind"), [(True, COMMIT), (False, ABORT)])
def test_version_1_transaction_begins_with_add_partitions(talk, committed, kind):
    place = new_topic(talk.either)
    tx, producer = talk.begin()

    assert {(place.name, 0): "none"} == add(talk, tx, producer, [(place.name, 0)])
    assert 0 == talk.produce_result(place, transactional(*producer, 0), 11, tx=tx)
    assert talk.end(tx, producer, committed, version=4) is None

    until_equal(talk, [(kind, *producer)], lambda: markers(talk, place))
    again = {(place.name, 0): "none"}
    until_equal(talk, again, lambda: add(talk, tx, producer, [(place.name, 0)]))
    assert 2 == talk.produce_result(place, transactional(*producer, 1), 10, tx=tx)


def test_version_1_write_needs_added_partition(talk):
    place = new_topic(talk.either)
    tx, producer = talk.begin()

    reported = talk.produce(place, transactional(*producer, 0), 11, tx=tx)
    old = talk.produce(place, transactional(*producer, 0), 10, tx=tx)

    assert "transaction_abortable" == reported.error_code.name
    assert "invalid_txn_state" == old.error_code.name
    assert "Partition was not added to the transaction" == old.error_message


def test_unknown_partition_prevents_adding_others(talk):
    place = new_topic(talk.either)
    tx, producer = talk.begin()

    assert {
        (place.name, 0): "operation_not_attempted",
        (place.name, 1): "unknown_topic_or_partition",
    } == add(talk, tx, producer, [(place.name, 0, 1)])
    assert "transaction_abortable" == talk.produce_result(
        place, transactional(*producer, 0), 11, tx=tx
    )


def test_fencing_error_depends_on_version(talk):
    place = new_topic(talk.either)
    tx, old = talk.begin()
    new = talk.init(tx)
    group = f"g-{uuid.uuid4().hex[:8]}"
    assert later(old) == new

    for version, error in ((1, "invalid_producer_epoch"), (2, "producer_fenced")):
        assert {(place.name, 0): error} == add(
            talk, tx, old, [(place.name, 0)], version
        )
        assert error == talk.end(tx, old, version=version)
        assert error == add_group(talk, tx, old, group, version)
    newer = talk.init(tx)
    assert later(new) == newer
    assert "invalid_producer_epoch" == talk.init(tx, producer=old, version=3)
    assert "producer_fenced" == talk.init(tx, producer=old, version=4)


def test_returning_producer_aborts_and_skips_an_epoch(talk):
    place = new_topic(talk.either)
    tx, producer = talk.begin()
    assert 0 == talk.produce_result(place, transactional(*producer, 0), tx=tx)

    assert "concurrent_transactions" == talk.init(tx)
    until_equal(talk, [(ABORT, *later(producer))], lambda: markers(talk, place))
    until_equal(talk, later(producer, 2), lambda: talk.init(tx))
    assert "invalid_producer_epoch" == talk.produce_result(
        place, transactional(*producer, 1), tx=tx
    )


@pytest.mark.parametrize(
    ("tx", "timeout", "producer", "error"),
    [
        ("", 60.0, (-1, -1), "invalid_request"),
        ("x", 60.0, (1, -1), "invalid_request"),
        ("x", 60.0, (-1, 1), "invalid_request"),
        ("x", 0.0, (-1, -1), "invalid_transaction_timeout"),
        ("x", 901.0, (-1, -1), "invalid_transaction_timeout"),
    ],
)
def test_invalid_init_producer_id_is_rejected(talk, tx, timeout, producer, error):
    talk.begin(timeout=900.0)  # the maximum; a real Kafka gets its coordinators

    assert error == talk.init(tx, timeout, producer)


def test_idempotent_producers_get_unique_ids(talk):
    first, second = talk.init(), talk.init()

    assert first[0] != second[0]
    assert [0, 0] == [first[1], second[1]]


def test_repeated_end_gets_the_same_response(talk):
    place = new_topic(talk.either)
    tx, producer = talk.begin()
    talk.produce(place, transactional(*producer, 0), tx=tx)

    assert [later(producer)] * 2 == [talk.end(tx, producer) for _ in range(2)]
    assert "invalid_txn_state" == talk.end(tx, producer, committed=False)
    assert "invalid_txn_state" == talk.end(tx, later(producer))
    assert later(producer, 2) == talk.end(tx, later(producer), committed=False)


def test_marker_is_the_latest_record(talk):
    place = new_topic(talk.either)
    tx, producer = talk.begin()
    talk.produce(place, transactional(*producer, 0), tx=tx)
    talk.end(tx, producer)

    until_equal(talk, 1, lambda: talk.look_up(place, -3).offset)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [3, 5])
def test_offsets_are_pending_until_transaction_end(talk, version, committed):
    place = new_topic(talk.either)
    group = f"g-{uuid.uuid4().hex[:8]}"
    talk.either.find(group)
    tx, producer = talk.begin()

    if version < 5:
        assert "none" == add_group(talk, tx, producer, group)
    assert "none" == commit_offset(talk, tx, producer, group, place, 7, version)
    assert "unstable_offset_commit" == committed_offset(talk, group, place)
    assert -1 == committed_offset(talk, group, place, stable=False)
    talk.end(tx, producer, committed, version=version)

    expected = 7 if committed else -1
    until_equal(talk, expected, lambda: committed_offset(talk, group, place))


@pytest.mark.parametrize(
    ("version", "error"), [(3, "invalid_txn_state"), (4, "transaction_abortable")]
)
def test_group_not_added_cannot_commit(talk, version, error):
    place = new_topic(talk.either)
    group = f"g-{uuid.uuid4().hex[:8]}"
    talk.either.find(group)
    tx, producer = talk.begin()

    assert error == commit_offset(talk, tx, producer, group, place, 7, version)
    assert -1 == committed_offset(talk, group, place)


def test_other_brokers_are_not_coordinator():
    embedded = Embedded(brokers=2)
    talk = Talk(embedded)
    tx, producer = next(
        (tx, talk.init(tx))
        for tx in map(str, range(100))
        if embedded.cluster.coordinators.node_for(TRANSACTION, tx, [1, 2]) == 1
    )
    embedded.cluster.coordinators.move(TRANSACTION, tx, 2)

    assert "not_coordinator" == talk.init(tx)
    response = embedded.request(
        "end_txn",
        5,
        transactional_id=tx,
        producer_id=producer[0],
        producer_epoch=producer[1],
    )
    assert "not_coordinator" == response.error_code.name
    assert {("t", 0): "not_coordinator"} == add(talk, tx, producer, [("t", 0)])


def test_denied_transactional_id_is_an_error():
    embedded = Embedded()
    talk, place = Talk(embedded), new_topic(embedded)
    tx, producer = talk.begin()
    embedded.deny(Resource.TRANSACTIONAL_ID, tx, Operation.WRITE)
    denied = "transactional_id_authorization_failed"

    assert denied == talk.init(tx)
    assert denied == talk.end(tx, producer)
    assert denied == add_group(talk, tx, producer, "g")
    assert {(place.name, 0): denied} == add(talk, tx, producer, [(place.name, 0)])
    assert denied == talk.produce_result(place, transactional(*producer, 0), tx=tx)


def test_deleted_partition_does_not_block_the_end():
    embedded = Embedded()
    talk, kept, dropped = Talk(embedded), new_topic(embedded), new_topic(embedded)
    tx, producer = talk.begin()
    for place in (kept, dropped):
        talk.produce(place, transactional(*producer, 0), tx=tx)

    embedded.cluster.delete_topic(embedded.cluster.topics.by_name(dropped.name))

    assert later(producer) == talk.end(tx, producer)
    assert [(COMMIT, *later(producer))] == markers(talk, kept)


def test_transaction_times_out():
    embedded = Embedded()
    talk, place = Talk(embedded), new_topic(embedded)
    tx, producer = talk.begin(timeout=5.0)
    talk.produce(place, transactional(*producer, 0), tx=tx)

    embedded.sleep(4.9)
    assert [] == offsets_in(talk.read(place, isolation_level=1))
    embedded.sleep(0.1)
    assert [0, 1] == offsets_in(talk.read(place, isolation_level=1))
    assert "invalid_producer_epoch" == talk.produce_result(
        place, transactional(*producer, 1), tx=tx
    )


def test_several_producers_in_one_request_are_rejected():
    embedded = Embedded()
    talk, place = Talk(embedded), new_topic(embedded, partitions=2)
    tx, (producer_id, epoch) = talk.begin()

    response = embedded.request(
        "produce",
        13,
        transactional_id=tx,
        acks=-1,
        topic_data=[
            {
                "topic_id": place.topic_id,
                "partition_data": [
                    {"index": 0, "records": transactional(producer_id, epoch, 0)},
                    {"index": 1, "records": transactional(producer_id + 1, epoch, 0)},
                ],
            }
        ],
    )

    errors = {
        each.error_code.name for each in response.responses[0].partition_responses
    }
    assert {"invalid_producer_id_mapping"} == errors


def test_plain_records_can_interleave_a_transaction(talk):
    place = new_topic(talk.either)
    tx, producer = talk.begin()
    talk.produce(place, transactional(*producer, 0), tx=tx)
    talk.produce(place, batch(timestamp=NOW))

    head = BatchHead(talk.read(place, 1).records)
    assert (1, -1, 0) == (head.base_offset, head.producer_id, head.attributes)
