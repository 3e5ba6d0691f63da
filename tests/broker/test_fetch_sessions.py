"""Fetch sessions, on the embedded broker and on a real Kafka."""

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.fetch_sessions import (
    FetchPartition,
    FetchSessionError,
    FetchSessions,
    PartitionStatus,
)
from tests.broker.either import BOTH, Embedded, either_broker
from tests.broker.log_requests import Place, Talk, new_topic, parts
from tests.broker.raw_batches import batch

NOTHING_NEW = PartitionStatus(0, 0, has_records=False, is_error=False)


@pytest.fixture(params=BOTH)
def talk(request):
    return Talk(either_broker(request))


def test_session_returns_only_changed_partitions(talk):
    place = new_topic(talk.either, partitions=2)
    talk.produce(place, batch())
    opened = talk.fetch((place, 0, 1), (place, 1, 0), session_epoch=0)
    session = opened.session_id

    def more(epoch, *partitions, **values):
        return talk.fetch(
            *partitions, session_id=session, session_epoch=epoch, **values
        )

    assert [(0, "none", []), (1, "none", [])] == parts(opened)
    assert session
    assert [] == parts(more(1))
    talk.produce(place, batch(), partition=1)
    assert [(1, "none", [0])] == parts(more(2))
    assert [] == parts(more(3, (place, 1, 1)))
    assert [(0, "none", [0])] == parts(more(4, (place, 0, 0)))
    forgotten = {"topic_id": place.topic_id, "partitions": [0]}
    assert [] == parts(more(5, forgotten_topics_data=[forgotten]))
    assert [(1, "offset_out_of_range", [])] == parts(more(6, (place, 1, 9)))
    assert [(1, "offset_out_of_range", [])] == parts(more(7))
    assert [(1, "none", [])] == parts(more(8, (place, 1, 1)))
    assert [] == parts(more(9))


def test_session_requires_next_epoch_and_same_topic_form(talk):
    place = new_topic(talk.either)
    session = talk.fetch((place, 0, 0), session_epoch=0).session_id

    def error(epoch, session_id=session, **values):
        response = talk.fetch(session_id=session_id, session_epoch=epoch, **values)
        assert 0 == (response.session_id if response.error_code else 0)
        return response.error_code.name

    assert "none" == error(1)
    assert "invalid_fetch_session_epoch" == error(1)
    assert "invalid_fetch_session_epoch" == error(3)
    assert "fetch_session_id_not_found" == error(1, session_id=session ^ 1)
    assert "fetch_session_topic_id_error" == error(2, version=12)
    assert "none" == error(2)


def test_session_ends_when_closed_replaced_or_empty(talk):
    place = new_topic(talk.either)
    forgotten = [{"topic_id": place.topic_id, "partitions": [0]}]

    def open_session():
        return talk.fetch((place, 0, 0), session_epoch=0).session_id

    def fetch_session(session, epoch, *partitions, **values):
        return talk.fetch(
            *partitions, session_id=session, session_epoch=epoch, **values
        )

    closed = open_session()
    assert 0 == fetch_session(closed, -1, (place, 0, 0)).session_id
    replaced = open_session()
    assert fetch_session(replaced, 0, (place, 0, 0)).session_id not in (0, replaced)
    emptied = open_session()
    assert 0 == fetch_session(emptied, 1, forgotten_topics_data=forgotten).session_id

    not_found = ErrorCode.fetch_session_id_not_found
    for gone in (closed, replaced, emptied):
        assert not_found == fetch_session(gone, 2).error_code


def test_partitions_with_records_move_to_the_end(talk):
    place = new_topic(talk.either, partitions=3)
    for partition in range(3):
        talk.produce(place, batch(), partition=partition)
    session = talk.fetch(
        *((place, index, 0) for index in range(3)), session_epoch=0, max_bytes=1
    ).session_id

    reported = [
        parts(talk.fetch(session_id=session, session_epoch=epoch, max_bytes=1))
        for epoch in range(1, 5)
    ]

    assert [0, 1, 2, 0] == [part for ((part, _, _),) in reported]


def fetch_of(partition):
    return FetchPartition(topic_partition=("t", partition), offset=0, max_bytes=1)


def test_number_of_sessions_is_limited():
    sessions = FetchSessions(slots=2)

    def open_session():
        fetching = sessions.begin(1, (0, 0), [fetch_of(0)], (), by_id=False)
        return sessions.finish(fetching, {("t", 0): NOTHING_NEW})[0]

    first, second = open_session(), open_session()
    sessions.begin(1, (first, 1), [], (), by_id=False)
    open_session()

    # The session used last is kept.
    sessions.begin(1, (first, 2), [], (), by_id=False)
    with pytest.raises(FetchSessionError):
        sessions.begin(1, (second, 1), [], (), by_id=False)


def test_sessions_end_with_their_broker():
    embedded = Embedded(brokers=2)
    embedded.cluster.add_topic("t", [[1, 2]], {})
    talk, place = (
        Talk(embedded),
        Place("t", embedded.cluster.topics.by_name("t").topic_id),
    )
    session = talk.fetch((place, 0, 0), session_epoch=0).session_id

    elsewhere = talk.fetch(session_id=session, session_epoch=1, version=13)
    assert not elsewhere.error_code
    with pytest.raises(FetchSessionError):
        embedded.cluster.fetch_sessions.begin(2, (session, 2), [], (), by_id=True)

    embedded.cluster.broker_stopped(1)
    embedded.cluster.broker_started(1)
    gone = talk.fetch(session_id=session, session_epoch=2)
    assert ErrorCode.fetch_session_id_not_found == gone.error_code
