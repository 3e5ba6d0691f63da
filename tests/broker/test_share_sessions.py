"""Share sessions: epochs, partitions, and their end."""

import uuid

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.configs import Configs
from sharecons.testing.broker.share.acquire import AcquireRequest
from sharecons.testing.broker.share.partitions import SharePartitionKey, SharePartitions
from sharecons.testing.broker.share.sessions import (
    SessionError,
    ShareSessions,
    TopicPartition,
)
from sharecons.testing.broker.topics import Partition
from tests.broker.offset_log import Log

TOPIC = uuid.UUID(int=7)
FIRST, SECOND, THIRD = (TopicPartition(TOPIC, index) for index in range(3))
EARLIEST = {"share.auto.offset.reset": "earliest"}


class Broker:
    """The sessions on broker 1, and the share partitions that it leads."""

    def __init__(self):
        configs = Configs()
        configs.set_group("g", EARLIEST)
        self.partitions = SharePartitions(configs, lambda: 0.0)
        self.sessions = ShareSessions(self.partitions)
        self.partitions.initialize("g", TOPIC, 0)
        self.key = SharePartitionKey("g", TOPIC, 0)

    @property
    def partition(self):
        place = Partition(index=0, replicas=[1], leader=1)
        return self.partitions.load(self.key, place, 0)

    def open(self, member, connection, *named, node=1):
        return self.sessions.open(node, "g", member, connection, named or (FIRST,))

    def acquire(self, member, *sizes):
        log = Log()
        log.append(*sizes or (10,))
        settings = self.partitions.group_settings("g")
        request = AcquireRequest(member=member, max_records=500)
        offset = self.partition.next_fetch_offset()
        return self.partition.acquire(request, offset, log.read(offset), settings, 0.0)

    def held(self, member):
        return [tuple(part) for part in self.partition.acquired_by(member)]


@pytest.fixture
def broker():
    return Broker()


def code(error):
    return error.value.code


def test_session_requires_the_next_epoch(broker):
    broker.open("ann", "wire")
    broker.sessions.next_request(1, "g", "ann", 1)
    broker.sessions.next_request(1, "g", "ann", 2)
    with pytest.raises(SessionError) as error:
        broker.sessions.next_request(1, "g", "ann", 2)

    assert code(error) is ErrorCode.invalid_share_session_epoch


def test_epoch_wraps_to_1(broker):
    broker.open("ann", "wire").epoch = 2**31 - 1
    broker.sessions.next_request(1, "g", "ann", 2**31 - 1)

    assert 1 == broker.sessions.find(1, "g", "ann").epoch


@pytest.mark.parametrize("who", [(2, "g", "ann"), (1, "h", "ann"), (1, "g", "bob")])
def test_session_belongs_to_one_member_and_broker(broker, who):
    broker.open("ann", "wire")
    with pytest.raises(SessionError) as error:
        broker.sessions.next_request(*who, 1)

    assert code(error) is ErrorCode.share_session_not_found


def test_replaced_session_releases_nothing(broker):
    broker.open("ann", "wire")
    broker.acquire("ann")
    broker.open("ann", "wire")

    assert [(0, 9, 1)] == broker.held("ann")


def test_old_connection_does_not_end_a_moved_session(broker):
    broker.open("ann", "old")
    session = broker.open("ann", "new")
    broker.acquire("ann")
    broker.sessions.connection_closed("old")

    assert session is broker.sessions.find(1, "g", "ann")
    assert [(0, 9, 1)] == broker.held("ann")


def test_last_closed_connection_unloads_the_group(broker):
    broker.open("ann", "wire")
    broker.acquire("ann", 5, 5)
    before = broker.partition
    broker.sessions.connection_closed("wire")

    assert broker.partition is not before
    assert [(0, 9, 2)] == [tuple(part) for part in broker.acquire("bob", 5, 5)]


def test_unloaded_leader_loses_locks_of_replaced_session(broker):
    broker.open("ann", "wire", SECOND)
    broker.acquire("ann")
    broker.sessions.connection_closed("wire")

    # Its locks were in memory only and never written.
    assert [(0, 9, 1)] == [tuple(part) for part in broker.acquire("bob")]


def test_number_of_sessions_is_limited(broker):
    broker.sessions.limit = 1
    broker.open("ann", "wire")
    broker.open("ann", "wire")
    broker.open("bob", "other", node=2)
    with pytest.raises(SessionError) as error:
        broker.open("bob", "other")

    assert code(error) is ErrorCode.share_session_limit_reached


def test_partitions_are_rotated(broker):
    session = broker.open("ann", "wire", FIRST, SECOND, THIRD)

    assert [FIRST, SECOND, THIRD] == session.rotated(0)
    assert [SECOND, THIRD, FIRST] == session.rotated(1)
    assert [FIRST, SECOND, THIRD] == session.rotated(3)


def test_partition_with_records_moves_to_the_end(broker):
    session = broker.open("ann", "wire", FIRST, SECOND, THIRD)
    session.must_respond(FIRST, has_error=False, has_records=True)

    assert [SECOND, THIRD, FIRST] == session.rotated(3)


def test_response_has_new_or_changed_partitions(broker):
    session = broker.open("ann", "wire", FIRST)
    session.update([SECOND], [])

    def must_respond(where, **what):
        fields = {"has_error": False, "has_records": False, **what}
        return session.must_respond(where, **fields)

    assert not must_respond(FIRST)
    assert must_respond(FIRST, has_records=True)
    assert must_respond(SECOND)
    assert not must_respond(SECOND)
    assert must_respond(SECOND, has_error=True)
    assert must_respond(SECOND)  # the end of the error is a change
    assert not must_respond(SECOND)


def test_close_member_ends_its_sessions(broker):
    broker.open("ann", "wire")
    broker.acquire("ann")
    broker.sessions.close_member("g", "ann")

    assert [] == broker.held("ann")
    with pytest.raises(SessionError):
        broker.sessions.find(1, "g", "ann")
