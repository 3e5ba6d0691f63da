"""Fetch, on the embedded broker and on a real Kafka."""

import uuid

import pytest

from tests.broker.either import Embedded
from tests.broker.log_requests import Place, Talk, new_topic, offsets_in, parts
from tests.broker.raw_batches import batch, batches_in, transactional


def size_of(records):
    heads, _ = batches_in(records)
    return 12 + heads[0].length


@pytest.mark.parametrize("version", range(4, 19))
def test_records_are_read_in_every_version(talk, version):
    place = new_topic(talk.either)
    for _ in range(2):
        talk.produce(place, batch("a", "b"))

    part = talk.read(place, 2, version=version)

    assert ("none", 4, 4) == (
        part.error_code.name,
        part.high_watermark,
        part.last_stable_offset,
    )
    assert [2] == offsets_in(part)
    assert part.aborted_transactions is None


def test_fetch_returns_batch_from_its_start(talk):
    place = new_topic(talk.either)
    talk.produce(place, batch("a", "b", "c"))

    assert [0] == offsets_in(talk.read(place, 2))
    assert [] == offsets_in(talk.read(place, 3))


@pytest.mark.parametrize("offset", [-1, 2])
def test_missing_offset_is_out_of_range(talk, offset):
    place = new_topic(talk.either)
    talk.produce(place, batch())

    part = talk.read(place, offset)

    assert "offset_out_of_range" == part.error_code.name
    assert (-1, -1, -1) == (
        part.high_watermark,
        part.last_stable_offset,
        part.log_start_offset,
    )


def test_unknown_partitions_come_last(talk):
    place = new_topic(talk.either)
    talk.produce(place, batch())
    nowhere = Place(f"nowhere-{uuid.uuid4().hex[:8]}", uuid.uuid4())

    by_id = talk.fetch((nowhere, 0, 0), (place, 1, 0), (place, 0, 0))
    by_name = talk.fetch((nowhere, 0, 0), (place, 0, 0), version=12)

    unknown = "unknown_topic_or_partition"
    assert (0, "none", [0]) == parts(by_id)[0]
    assert {(0, "unknown_topic_id"), (1, unknown)} == {
        part[:2] for part in parts(by_id)[1:]
    }
    assert [(0, "none", [0]), (0, unknown, [])] == parts(by_name)


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(-1, "none"), (0, "none"), (1, "unknown_leader_epoch"), (-5, "none")],
)
def test_leader_epoch_is_checked(talk, epoch, error):
    place = new_topic(talk.either)

    response = talk.fetch((place, 0, 0, ("current_leader_epoch", epoch)))

    assert [(0, error, [])] == parts(response)


def test_first_batch_is_whole_and_last_may_be_cut(talk):
    place = new_topic(talk.either, partitions=2)
    for _ in range(3):
        talk.produce(place, batch())
    talk.produce(place, batch(), partition=1)
    size = size_of(talk.read(place).records)

    def sizes(**values):
        both = (place, 0, 0), (place, 1, 0)
        (topic,) = talk.fetch(*both, **values).responses
        return [len(part.records) for part in topic.partitions]

    assert [size, 0] == sizes(max_bytes=1)
    assert [size + 5, 0] == sizes(max_bytes=size + 5)
    assert [3 * size, 0] == sizes(max_bytes=3 * size + 5)
    assert [3 * size, size] == sizes(max_bytes=4 * size)


def test_partition_max_bytes_limits_each_partition(talk):
    place = new_topic(talk.either, partitions=2)
    for partition in (0, 0, 1):
        talk.produce(place, batch(), partition=partition)
    size = size_of(talk.read(place).records)

    def sizes(room):
        both = ((place, index, 0, ("partition_max_bytes", room)) for index in (0, 1))
        (topic,) = talk.fetch(*both).responses
        return [len(part.records) for part in topic.partitions]

    assert [size, 0] == sizes(1)
    assert [size, size] == sizes(size)
    assert [size + 7, size] == sizes(size + 7)


def test_read_committed_ends_at_open_transaction(talk):
    place = new_topic(talk.either)
    tx, producer = talk.begin()
    talk.produce(place, batch("a", "b"))
    talk.produce(place, transactional(*producer, 0), tx=tx)
    talk.produce(place, batch())

    assert [0, 2, 3] == offsets_in(talk.read(place))
    part = talk.read(place, isolation_level=1)
    assert [0] == offsets_in(part)
    assert (4, 2, ()) == (
        part.high_watermark,
        part.last_stable_offset,
        part.aborted_transactions,
    )
    assert 2 == talk.look_up(place, -1, isolation=1).offset
    assert 4 == talk.look_up(place, -1).offset


def test_aborted_transactions_are_listed(talk):
    place = new_topic(talk.either)
    tx, producer = talk.begin()
    talk.produce(place, transactional(*producer, 0), tx=tx)
    talk.produce(place, batch())
    talk.end(tx, producer, committed=False)
    while talk.read(place, isolation_level=1).last_stable_offset < 3:
        talk.either.sleep(0.1)

    def aborted(offset):
        named = talk.read(place, offset, isolation_level=1).aborted_transactions
        return [(each.producer_id, each.first_offset) for each in named]

    assert [[(producer[0], 0)]] * 3 == [*map(aborted, (0, 1, 2))]
    assert [] == aborted(3)
    assert talk.read(place).aborted_transactions is None


def test_fetch_opens_no_session():
    embedded = Embedded()
    talk, place = Talk(embedded), new_topic(embedded)

    opening = talk.fetch((place, 0, 0), session_epoch=0)
    continuing = talk.fetch(session_id=7, session_epoch=1)

    assert (0, [(0, "none", [])]) == (opening.session_id, parts(opening))
    assert "fetch_session_id_not_found" == continuing.error_code.name


def test_old_leader_returns_the_new_leader():
    embedded = Embedded(brokers=2)
    embedded.cluster.add_topic("t", [[1, 2]], {})
    place = Place("t", embedded.cluster.topics.by_name("t").topic_id)
    embedded.cluster.move_leader("t", 0, 2)
    talk = Talk(embedded)

    known = ("current_leader_epoch", 0)
    response = talk.fetch((place, 0, 0, known))
    assert [(0, "fenced_leader_epoch", [])] == parts(response)
    leader = response.responses[0].partitions[0].current_leader
    assert (2, 1) == (leader.leader_id, leader.leader_epoch)
    assert [(2, 9093)] == [
        (node.node_id, node.port) for node in response.node_endpoints
    ]

    # Without a leader epoch, clients can read any replica since version 11 (KIP-392).
    assert [(0, "none", [])] == parts(talk.fetch((place, 0, 0)))
    old = talk.fetch((place, 0, 0), version=10)
    assert [(0, "not_leader_or_follower", [])] == parts(old)


def test_broker_without_replica_rejects_fetches():
    embedded = Embedded(brokers=2)
    embedded.cluster.add_topic("t", [[2]], {})
    place = Place("t", embedded.cluster.topics.by_name("t").topic_id)

    response = Talk(embedded).fetch((place, 0, 0))

    assert [(0, "not_leader_or_follower", [])] == parts(response)
    assert [2] == [node.node_id for node in response.node_endpoints]
