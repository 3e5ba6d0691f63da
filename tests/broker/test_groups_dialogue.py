"""Requests of members and administrators of classic groups.

Each test is a dialogue with the same responses from the embedded broker and a real
Kafka.
"""

import struct
import uuid

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.blocking_client import BlockingClient
from tests.waiting import until_true

SESSION = 10_000
TIMEOUT = 30.0
LOADING = {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
    ErrorCode.concurrent_transactions,
}


def settled(send, code_of, not_yet=LOADING):
    """Retry while a real Kafka loads coordinators or writes markers."""
    response = None

    def is_settled():
        nonlocal response
        response = send()
        return code_of(response) not in not_yet

    until_true(is_settled, TIMEOUT, what="the response")
    return response


def subscription(*topics):
    names = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return struct.pack(">hi", 1, len(topics)) + names + b"\xff\xff\xff\xff"


class Talk:
    """A group and a topic, with connections for their requests."""

    def __init__(self, kafka):
        self._kafka = kafka
        self._open = []
        self.topic = kafka.admin.create_topic(partitions=2)
        self.group = f"group-{uuid.uuid4().hex[:12]}"
        kafka.admin.group_coordinator(self.group)
        self.admin = self.client()
        (described,) = self.admin.request(
            "metadata",
            12,
            topics=[{"topic_id": None, "name": self.topic}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        ).topics
        self.topic_id = described.topic_id
        settled(lambda: self.describe(version=5), lambda groups: groups[0].error_code)

    def client(self, name="test"):
        client = BlockingClient(self._kafka.bootstrap_servers, name)
        self._open.append(client)
        return client

    def close(self):
        for client in self._open:
            client.__exit__()

    def describe(self, *groups, version=6, rights=False):
        return self.admin.request(
            "describe_groups",
            version,
            groups=groups or [self.group],
            include_authorized_operations=rights,
        ).groups

    def commit(
        self, offset, generation=-1, member="", version=9, group=None, **partition
    ):
        response = self.admin.request(
            "offset_commit",
            version,
            group_id=self.group if group is None else group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            retention_time=-1,
            topics=[
                {
                    "name": partition.pop("topic", self.topic),
                    "topic_id": partition.pop("topic_id", self.topic_id),
                    "partitions": [
                        {
                            "partition_index": 0,
                            "committed_offset": offset,
                            "committed_leader_epoch": 0,
                            "committed_metadata": "",
                            **partition,
                        }
                    ],
                }
            ],
        )
        return response.topics[0].partitions[0].error_code

    def fetch(self, *partitions, version=9, group=None, stable=False, topics=...):
        """Return offsets, metadata and errors by partition."""
        if topics is ...:
            wanted = {"name": self.topic, "topic_id": self.topic_id}
            topics = [{**wanted, "partition_indexes": partitions}]
        group = self.group if group is None else group
        response = self.admin.request(
            "offset_fetch",
            version,
            group_id=group,
            topics=topics,
            groups=[{"group_id": group, "topics": topics}],
            require_stable=stable,
        )
        found = response.groups[0].topics if version >= 8 else response.topics
        return {
            p.partition_index: (p.committed_offset, p.metadata, p.error_code)
            for topic in found
            for p in topic.partitions
        }

    def delete(self, *groups):
        results = self.admin.request("delete_groups", 2, groups_names=groups).results
        return {result.group_id: result.error_code for result in results}


class Member:
    """A member with its own connection."""

    def __init__(self, talk, instance=None, version=9):
        self.client = talk.client()
        self._talk = talk
        self._instance = instance
        self._version = version
        self.is_static = instance is not None
        self.id = ""
        self.generation = -1

    def send_join(self, member_id=None, **fields):
        self.client.send(
            "join_group",
            self._version,
            **{
                "group_id": self._talk.group,
                "session_timeout": SESSION,
                "rebalance_timeout": SESSION,
                "member_id": self.id if member_id is None else member_id,
                "group_instance_id": self._instance,
                "protocol_type": "consumer",
                "protocols": [
                    {"name": "range", "metadata": subscription(self._talk.topic)}
                ],
                **fields,
            },
        )

    def joined(self):
        response = self.client.receive()
        self.id, self.generation = response.member_id, response.generation_id
        return response

    def join(self, **fields):
        """Join; rejoin with the assigned id if required."""
        self.send_join(**fields)
        response = self.joined()
        if response.error_code is not ErrorCode.member_id_required:
            return response
        self.send_join(**fields)
        return self.joined()

    def knock(self):
        """Get a member id, and send the join without waiting for its response."""
        self.send_join()
        assert ErrorCode.member_id_required is self.joined().error_code
        self.send_join()

    def send_sync(self, assignments=None, **fields):
        self.client.send(
            "sync_group",
            5,
            **{
                "group_id": self._talk.group,
                "generation_id": self.generation,
                "member_id": self.id,
                "group_instance_id": self._instance,
                "protocol_type": "consumer",
                "protocol_name": "range",
                "assignments": [
                    {"member_id": member_id, "assignment": assignment}
                    for member_id, assignment in (assignments or {}).items()
                ],
                **fields,
            },
        )

    def sync(self, assignments=None, **fields):
        self.send_sync(assignments, **fields)
        return self.client.receive()

    def beat(self, **fields):
        return self.client.request(
            "heartbeat",
            4,
            **{
                "group_id": self._talk.group,
                "generation_id": self.generation,
                "member_id": self.id,
                "group_instance_id": self._instance,
                **fields,
            },
        ).error_code

    def leave(self, *members):
        leaving = members or [(self.id, self._instance)]
        response = self.client.request(
            "leave_group",
            5,
            group_id=self._talk.group,
            members=[
                {"member_id": one, "group_instance_id": instance, "reason": None}
                for one, instance in leaving
            ],
        )
        return [member.error_code for member in response.members]


@pytest.fixture
def talk(any_kafka):
    talk = Talk(any_kafka)
    yield talk
    talk.close()


def stable(talk, count=2, instances=(None, None), version=9):
    """Return the members of a stable group, the leader first."""
    members = []
    for _, instance in zip(range(count), instances, strict=True):
        new = Member(talk, instance, version)
        if members:
            grow(members[0], new)
        else:
            new.join()
        members.append(new)
        assignments = {member.id: member.id[-4:].encode() for member in members}
        members[0].send_sync(assignments)
        for member in members[1:]:
            member.sync()
        members[0].client.receive()
    return members


def grow(leader, new):
    """Add a member to a group of one."""
    new.send_join() if new.is_static else new.knock()
    until_rebalancing(leader)
    leader.send_join()
    new.joined()
    leader.joined()


def until_rebalancing(member):
    """Retry: requests of different connections can arrive in another order."""
    until_true(
        lambda: member.beat() is ErrorCode.rebalance_in_progress,
        TIMEOUT,
        what="the rebalance",
        pause=0,
    )


def until_described(talk, state):
    settled(talk.describe, lambda groups: groups[0].group_state == state, {False})


def test_one_member(talk):
    member = Member(talk)

    member.send_join()
    sent_away = member.joined()
    assert ErrorCode.member_id_required is sent_away.error_code
    assert sent_away.member_id.startswith("test-")
    # A real Kafka responds before the group is written, and lists it after.
    until_described(talk, "Empty")
    joined = member.join()

    assert (ErrorCode.none, 1, "consumer", "range", False) == (
        joined.error_code,
        joined.generation_id,
        joined.protocol_type,
        joined.protocol_name,
        joined.skip_assignment,
    )
    assert joined.leader == joined.member_id == sent_away.member_id
    assert [member.id] == [each.member_id for each in joined.members]
    assert ErrorCode.none is member.beat()
    (described,) = talk.describe()
    assert ("CompletingRebalance", "consumer", "", b"") == (
        described.group_state,
        described.protocol_type,
        described.protocol_data,
        described.members[0].member_metadata,
    )
    assert ErrorCode.rebalance_in_progress is talk.commit(1, 1, member.id)
    synced = member.sync({member.id: b"mine"})
    assert (b"mine", "consumer", "range") == (
        synced.assignment,
        synced.protocol_type,
        synced.protocol_name,
    )
    assert ErrorCode.none is talk.commit(1, 1, member.id)


def test_join_errors(talk):
    member = Member(talk)
    stranger = Member(talk)

    def error(**fields):
        stranger.id = ""
        stranger.send_join(**fields)
        response = stranger.joined()
        assert (-1, None, None, "", ()) == (
            response.generation_id,
            response.protocol_type,
            response.protocol_name,
            response.leader,
            response.members,
        )
        return response.error_code, response.member_id

    assert (ErrorCode.invalid_group_id, "") == error(group_id="")
    assert (ErrorCode.invalid_session_timeout, "") == error(session_timeout=5999)
    assert (ErrorCode.invalid_session_timeout, "") == error(session_timeout=1800001)
    assert (ErrorCode.unknown_member_id, "x") == error(member_id="x")
    assert (ErrorCode.inconsistent_group_protocol, "") == error(protocols=[])
    assert (ErrorCode.inconsistent_group_protocol, "") == error(protocol_type="")
    member.join()
    assert (ErrorCode.unknown_member_id, "x") == error(member_id="x")
    assert (ErrorCode.inconsistent_group_protocol, "") == error(
        protocols=[{"name": "sticky", "metadata": b""}]
    )
    assert (ErrorCode.inconsistent_group_protocol, "") == error(protocol_type="other")


@pytest.mark.parametrize("version", range(10))
def test_join_in_every_version(talk, version):
    (member,) = stable(talk, 1, (None,), version)

    assert (1, ErrorCode.none) == (member.generation, member.beat())


def test_second_member_joins_and_leaves(talk):
    one, two = Member(talk), Member(talk)
    one.join()
    one.sync({one.id: b"all"})

    two.knock()
    until_rebalancing(one)
    assert ["PreparingRebalance"] == [g.group_state for g in talk.describe()]
    assert ErrorCode.rebalance_in_progress is one.sync().error_code
    assert ErrorCode.none is talk.commit(1, one.generation, one.id)
    assert not two.client.has_response()
    leads, follows = one.join(), two.joined()

    assert {one.id, two.id} == {each.member_id for each in leads.members}
    assert (2, one.id, ()) == (
        follows.generation_id,
        follows.leader,
        follows.members,
    )
    two.send_sync()
    assert ErrorCode.none is one.beat()
    assert not two.client.has_response()
    assert b"1" == one.sync({one.id: b"1", two.id: b"2"}).assignment
    assert b"2" == two.client.receive().assignment
    assert [ErrorCode.none] == one.leave()
    assert ErrorCode.rebalance_in_progress is two.beat()
    alone = two.join()
    assert (3, two.id) == (alone.generation_id, alone.leader)


def test_sync_errors(talk):
    (one,) = stable(talk, 1, (None,))

    def error(**fields):
        return one.sync(**fields).error_code

    assert ErrorCode.illegal_generation is error(generation_id=9)
    assert ErrorCode.unknown_member_id is error(member_id="x")
    assert ErrorCode.unknown_member_id is error(group_id="unknown")
    assert ErrorCode.invalid_group_id is error(group_id="")
    assert ErrorCode.inconsistent_group_protocol is error(protocol_name="sticky")
    assert ErrorCode.inconsistent_group_protocol is error(protocol_type="other")
    assert ErrorCode.inconsistent_group_protocol is error(protocol_name=None)
    assert ErrorCode.none is error()


def test_heartbeat_errors(talk):
    (one,) = stable(talk, 1, (None,))

    assert ErrorCode.none is one.beat()
    assert ErrorCode.illegal_generation is one.beat(generation_id=9)
    assert ErrorCode.unknown_member_id is one.beat(member_id="x")
    assert ErrorCode.unknown_member_id is one.beat(group_instance_id="x")
    assert ErrorCode.unknown_member_id is one.beat(group_id="unknown")
    assert ErrorCode.invalid_group_id is one.beat(group_id="")


def test_rejoin_of_leader_and_follower(talk):
    one, two = stable(talk)
    before = two.generation

    follower = two.join()
    assert (before, ErrorCode.none) == (follower.generation_id, follower.error_code)
    assert ErrorCode.none is one.beat()
    one.send_join()
    until_rebalancing(two)
    assert before + 1 == two.join().generation_id
    assert before + 1 == one.joined().generation_id
    again = one.join()
    assert (before + 1, 2) == (again.generation_id, len(again.members))


def test_static_follower_returns(talk):
    one, two = stable(talk, instances=("i1", "i2"))
    old = two.id
    new = Member(talk, "i2")

    response = new.join()

    assert (two.generation, one.id, False) == (
        response.generation_id,
        response.leader,
        response.skip_assignment,
    )
    assert new.id.startswith("i2-")
    assert new.id != old
    assert ErrorCode.fenced_instance_id is two.beat()
    assert [ErrorCode.fenced_instance_id] == two.leave()
    assert ErrorCode.none is one.beat()
    assert old[-4:].encode() == new.sync().assignment


@pytest.mark.parametrize("version", [8, 9])
def test_static_leader_returns(talk, version):
    one, two = stable(talk, instances=("i1", "i2"))
    new = Member(talk, "i1", version)

    response = new.join()

    if version == 9:
        assert (True, new.id) == (response.skip_assignment, response.leader)
        assert {new.id, two.id} == {each.member_id for each in response.members}
    else:
        assert (one.id, ()) == (response.leader, response.members)
    assert ErrorCode.none is two.beat()


def test_leave_by_member_id_and_instance_id(talk):
    one, _ = stable(talk, instances=("i1", "i2"))
    unknown, none = ErrorCode.unknown_member_id, ErrorCode.none
    fenced = ErrorCode.fenced_instance_id

    codes = one.leave(("x", None), ("", "i9"), ("", None), ("x", "i1"), ("", "i2"))

    assert [unknown, unknown, unknown, fenced, none] == codes
    assert [none] == one.leave()
    assert [unknown] == one.leave()
    (described,) = talk.describe()
    assert ("Empty", "consumer", ()) == (
        described.group_state,
        described.protocol_type,
        described.members,
    )


def test_waiting_sync_of_removed_member_never_gets_a_response(talk):
    assert not all(removed_member_gets_a_response(talk) for _ in range(10))


def removed_member_gets_a_response(talk):
    """Return whether the response came; it does if the leave request arrived first."""
    one, two = stable(talk, instances=("i1", "i2"))
    one.send_join()
    until_rebalancing(two)
    two.join()
    one.joined()
    two.send_sync()

    assert ErrorCode.none is one.beat()
    assert [ErrorCode.none] == one.leave(("", "i2"))
    assert ErrorCode.rebalance_in_progress is one.beat()
    has_response = two.client.has_response()
    if has_response:
        assert ErrorCode.unknown_member_id is two.client.receive().error_code
    assert [ErrorCode.none] == one.leave()
    return has_response


def test_disconnect_during_join_keeps_the_member(talk):
    (one,) = stable(talk, 1, (None,))
    two = Member(talk)
    two.knock()
    until_rebalancing(one)

    two.client.__exit__()
    joined = one.join()

    assert {one.id, two.id} == {each.member_id for each in joined.members}


def test_pending_id_with_instance_id_is_an_error(talk):
    member = Member(talk)
    member.send_join()
    member.joined()

    member.send_join(group_instance_id="i")

    assert ErrorCode.unknown_server_error is member.joined().error_code


def test_group_deleted_between_join_rounds(talk):
    member = Member(talk)
    member.send_join()
    member.joined()

    assert {talk.group: ErrorCode.none} == talk.delete(talk.group)
    member.send_join()

    assert ErrorCode.unknown_member_id is member.joined().error_code


def test_offsets_in_every_version_of_a_commit(talk):
    for version in range(2, 11):
        assert ErrorCode.none is talk.commit(version, version=version)
        assert version == talk.fetch(0)[0][0]


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_in_every_version_of_a_fetch(talk, version):
    talk.commit(7, committed_metadata="note")

    none = ErrorCode.none
    committed = (7, "note", none)
    assert {0: committed, 1: (-1, "", none), 9: (-1, "", none)} == talk.fetch(
        0, 1, 9, version=version
    )
    if version > 1:
        assert {0: committed} == talk.fetch(version=version, topics=None)


def test_commit_errors(talk):
    (one,) = stable(talk, 1, (None,))

    def error(generation=one.generation, member=one.id, **fields):
        return talk.commit(1, generation, member, **fields)

    assert ErrorCode.illegal_generation is error(9)
    assert ErrorCode.unknown_member_id is error(member="x")
    assert ErrorCode.unknown_member_id is error(-1, "")
    assert ErrorCode.group_id_not_found is error(group="unknown")
    assert ErrorCode.illegal_generation is error(group="unknown", version=8)
    missing = ErrorCode.unknown_topic_or_partition
    assert missing is error(topic="unknown")
    assert missing is error(partition_index=2)
    other = uuid.uuid4()
    assert ErrorCode.unknown_topic_id is error(topic_id=other, version=10)
    assert ErrorCode.unknown_topic_id is error(topic_id=None, version=10)
    long = "x" * 4097
    assert ErrorCode.offset_metadata_too_large is error(committed_metadata=long)
    assert ErrorCode.none is error(committed_metadata=long[1:])
    assert ErrorCode.none is error(committed_metadata=None, version=10)


def test_commit_to_group_without_members(talk):
    assert ErrorCode.none is talk.commit(3, -1, "anybody")
    assert ErrorCode.unknown_member_id is talk.commit(3, 1, "anybody")

    (described,) = talk.describe()
    assert ("Empty", "", ErrorCode.none) == (
        described.group_state,
        described.protocol_type,
        described.error_code,
    )
    assert {0: (-1, "", ErrorCode.none)} == talk.fetch(0, group="unknown")
    assert {} == talk.fetch(group="unknown", topics=None)


def test_deleting_offsets(talk):
    (one,) = stable(talk, 1, (None,))
    talk.commit(1, one.generation, one.id)

    def error(group=None, topic=None, partition=0):
        response = talk.admin.request(
            "offset_delete",
            0,
            group_id=talk.group if group is None else group,
            topics=[
                {
                    "name": topic or talk.topic,
                    "partitions": [{"partition_index": partition}],
                }
            ],
        )
        if response.error_code:
            return response.error_code
        return response.topics[0].partitions[0].error_code

    assert ErrorCode.group_subscribed_to_topic is error()
    assert ErrorCode.unknown_topic_or_partition is error(topic="unknown")
    assert ErrorCode.unknown_topic_or_partition is error(partition=2)
    assert ErrorCode.group_id_not_found is error("unknown")
    assert ErrorCode.invalid_group_id is error("")
    one.leave()
    assert ErrorCode.none is error()
    assert {} == talk.fetch(topics=None)


def test_groups_listed_and_described(talk):
    (one,) = stable(talk, 1, (None,))

    def listed(version=5, states=(), types=()):
        response = talk.admin.request(
            "list_groups", version, states_filter=states, types_filter=types
        )
        return [group for group in response.groups if group.group_id == talk.group]

    (group,) = listed()
    assert ("consumer", "Stable", "classic") == (
        group.protocol_type,
        group.group_state,
        group.group_type,
    )
    assert listed(states=["STABLE "], types=["Classic"])
    assert not listed(states=["empty"])
    assert not listed(types=["share"])
    assert not listed(types=["nonsense"])
    assert listed(version=4, states=["stable", "empty"])
    assert "consumer" == listed(version=0)[0].protocol_type
    (described,) = talk.describe(rights=True)
    (member,) = described.members
    assert ("Stable", "consumer", "range", 3400) == (
        described.group_state,
        described.protocol_type,
        described.protocol_data,
        described.authorized_operations,
    )
    assert (one.id, "test", "/127.0.0.1", one.id[-4:].encode()) == (
        member.member_id,
        member.client_id,
        member.client_host,
        member.member_assignment,
    )
    assert subscription(talk.topic) == member.member_metadata


def test_missing_group_is_dead(talk):
    (new,) = talk.describe("unknown")
    (old,) = talk.describe("unknown", version=5)

    assert ("Dead", ErrorCode.group_id_not_found) == (new.group_state, new.error_code)
    assert "Group unknown not found." == new.error_message
    assert ("Dead", ErrorCode.none) == (old.group_state, old.error_code)


def test_deleting_groups(talk):
    (one,) = stable(talk, 1, (None,))
    talk.commit(1, one.generation, one.id)

    assert {
        talk.group: ErrorCode.non_empty_group,
        "unknown": ErrorCode.group_id_not_found,
    } == talk.delete(talk.group, "unknown")
    one.leave()
    assert {talk.group: ErrorCode.none} == talk.delete(talk.group)
    assert {} == talk.fetch(topics=None)
    assert ErrorCode.unknown_member_id is one.beat()


class Producer:
    """A transactional producer that commits offsets, with old or new requests."""

    def __init__(self, talk, version):
        self._talk = talk
        self._version = version
        self._id = f"transactional-{uuid.uuid4().hex[:12]}"
        self._request("find_coordinator", 3, key=self._id, key_type=1)
        response = self._request(
            "init_producer_id",
            4,
            transactional_id=self._id,
            transaction_timeout=30_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        self._who = {
            "producer_id": response.producer_id,
            "producer_epoch": response.producer_epoch,
        }

    def _request(self, api, version, **values):
        response = settled(
            lambda: self._talk.admin.request(api, version, **values),
            lambda response: response.error_code,
        )
        assert ErrorCode.none is response.error_code
        return response

    def add(self):
        self._request(
            "add_offsets_to_txn",
            3,
            transactional_id=self._id,
            group_id=self._talk.group,
            **self._who,
        )

    def commit(self, offset, generation=-1, member="", group=None):
        partition = {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": None,
        }
        response = settled(
            lambda: self._talk.admin.request(
                "txn_offset_commit",
                self._version,
                transactional_id=self._id,
                group_id=self._talk.group if group is None else group,
                generation_id=generation,
                member_id=member,
                topics=[{"name": self._talk.topic, "partitions": [partition]}],
                **self._who,
            ),
            lambda response: response.topics[0].partitions[0].error_code,
        )
        return response.topics[0].partitions[0].error_code

    def end(self, committed):
        new = self._version >= 5
        response = self._request(
            "end_txn",
            5 if new else 3,
            transactional_id=self._id,
            committed=committed,
            **self._who,
        )
        if new:
            self._who["producer_epoch"] = response.producer_epoch


@pytest.mark.parametrize("version", range(6))
def test_transaction_offsets_become_visible_on_commit(talk, version):
    talk.commit(1)
    producer = Producer(talk, version)
    if version < 5:
        producer.add()
    assert ErrorCode.none is producer.commit(2)

    assert {0: (1, "", ErrorCode.none)} == talk.fetch(0)
    unstable = {0: (-1, "", ErrorCode.unstable_offset_commit)}
    assert unstable == talk.fetch(0, stable=True)
    assert unstable == talk.fetch(stable=True, topics=None)
    producer.end(True)
    assert {0: (2, "", ErrorCode.none)} == fetch_settled(talk)
    if version < 5:
        producer.add()
    assert ErrorCode.none is producer.commit(3)
    producer.end(False)
    assert {0: (2, "", ErrorCode.none)} == fetch_settled(talk)


def fetch_settled(talk):
    """Return the offsets once a real Kafka has written its markers."""
    unstable = {ErrorCode.unstable_offset_commit}
    return settled(lambda: talk.fetch(0, stable=True), lambda f: f[0][2], unstable)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (3, ErrorCode.invalid_txn_state),
        (4, ErrorCode.transaction_abortable),
    ],
)
def test_group_not_added_to_transaction_is_rejected(talk, version, expected):
    producer = Producer(talk, version)

    assert expected is producer.commit(2)


def test_transaction_offsets_of_unknown_member_are_rejected(talk):
    (one,) = stable(talk, 1, (None,))
    producer = Producer(talk, 5)

    assert ErrorCode.illegal_generation is producer.commit(2, 9, one.id)
    assert ErrorCode.unknown_member_id is producer.commit(2, one.generation, "x")
    assert ErrorCode.none is producer.commit(2, one.generation, one.id)
    assert ErrorCode.none is producer.commit(2)
    assert ErrorCode.illegal_generation is producer.commit(2, 1, "x", group="unknown")
    assert ErrorCode.invalid_group_id is producer.commit(2, group="")
    producer.end(False)


def test_classic_requests_to_share_group_fail(talk):
    member_id = "A" * 21 + "g"

    def beat(epoch, group=None, topics=None):
        return talk.admin.request(
            "share_group_heartbeat",
            1,
            group_id=group or talk.group,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=topics,
        )

    assert ErrorCode.none is beat(0, topics=[talk.topic]).error_code
    classic = Member(talk)
    assert ErrorCode.inconsistent_group_protocol is classic.join().error_code
    classic.id = "x"
    assert ErrorCode.unknown_member_id is classic.beat()
    assert ErrorCode.unknown_member_id is classic.sync().error_code
    assert [ErrorCode.unknown_member_id] == classic.leave(("x", None))
    assert ErrorCode.group_id_not_found is talk.commit(1)
    assert {0: (-1, "", ErrorCode.none)} == talk.fetch(0)
    assert {} == talk.fetch(topics=None)
    (described,) = talk.describe()
    assert f"Group {talk.group} is not a classic group." == described.error_message
    assert {talk.group: ErrorCode.non_empty_group} == talk.delete(talk.group)
    beat(-1)
    classic.id = ""
    assert ErrorCode.inconsistent_group_protocol is classic.join().error_code
    assert {talk.group: ErrorCode.none} == talk.delete(talk.group)
    assert ErrorCode.none is classic.join().error_code
    classic.leave()
    rejected = beat(0, topics=[talk.topic])
    assert ErrorCode.group_id_not_found is rejected.error_code


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.none),
        ("a:b:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.none),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:-1", ErrorCode.none),
        ("g", ErrorCode.invalid_request),
        ("g:short:0", ErrorCode.invalid_request),
        (":AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.invalid_request),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:x", ErrorCode.invalid_request),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ", ErrorCode.invalid_request),
    ],
)
def test_coordinators_of_share_state(talk, key, expected):
    def error(version):
        (found,) = talk.admin.request(
            "find_coordinator", version, key_type=2, coordinator_keys=[key]
        ).coordinators
        assert (key, found.error_code == 0) == (found.key, found.node_id >= 0)
        return found.error_code

    assert ErrorCode.invalid_request is error(5)
    assert expected is settled(lambda: error(6), lambda code: code)


@pytest.mark.parametrize("version", range(7))
def test_coordinators_in_every_version(talk, version):
    keys = {"key_type": 0, "key": talk.group, "coordinator_keys": [talk.group, "g"]}
    response = talk.admin.request("find_coordinator", version, **keys)
    found = response.coordinators[0] if version >= 4 else response

    assert (ErrorCode.none, "127.0.0.1") == (found.error_code, found.host)
    if version >= 4:
        assert [talk.group, "g"] == [each.key for each in response.coordinators]
        assert "" == found.error_message
    elif version:
        assert "NONE" == found.error_message


@pytest.mark.parametrize("version", [1, 3, 4, 6])
def test_coordinators_of_invalid_keys(talk, version):
    keys = {"key_type": 9, "key": "x", "coordinator_keys": ["x"]}
    response = talk.admin.request("find_coordinator", version, **keys)
    found = response.coordinators[0] if version >= 4 else response

    assert (ErrorCode.invalid_request, -1) == (found.error_code, found.node_id)
