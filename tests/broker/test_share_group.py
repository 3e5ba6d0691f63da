"""Members of a share group: cases that test_share_group_dialogue.py does not have."""

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.share.group import Heartbeat, Limits, ShareGroup
from sharecons.testing.broker.topics import Topics

AT_ONCE = Limits(assignment_interval=0.0)


class Play:
    """A group, its topics, and a clock."""

    def __init__(self, limits=AT_ONCE, **partitions):
        self.group = ShareGroup("g")
        self.topics = Topics()
        self.limits = limits
        self.now = 0.0
        for name, count in partitions.items():
            self.topics.create(name, [[1]] * count)

    def beat(self, member_id, epoch=None, topics=None, **values):
        if epoch is None:
            epoch = self.group.members[member_id].epoch
        beat = Heartbeat(
            member_id=member_id,
            member_epoch=epoch,
            topics=None if topics is None else tuple(topics),
            **values,
        )
        return self.group.heartbeat(beat, self.topics, self.limits, self.now)

    def join(self, member_id, *topics, **values):
        """Join, and get the assignment by the second heartbeat."""
        self.beat(member_id, 0, topics, **values)
        return self.beat(member_id)

    def has(self, member_id):
        assigned = {}
        for topic_id, index in sorted(self.group.members[member_id].assigned):
            name = self.topics.by_id(topic_id).name
            assigned.setdefault(name, []).append(index)
        return assigned


def code_of(error):
    return error.value.code


def test_silent_member_keeps_partitions_until_session_ends():
    play = Play(t=2)
    play.join("A", "t")
    play.join("B", "t")
    play.now = 44.9
    play.beat("A")
    assert {"t": [0]} == play.has("A")

    play.now = 45.0
    assert play.beat("A").assignment is not None
    assert {"t": [0, 1]} == play.has("A")
    with pytest.raises(GroupError) as error:
        play.beat("B", 3)

    assert ErrorCode.unknown_member_id is code_of(error)


def test_next_deadline_is_the_earliest_session_end():
    play = Play(t=1)
    assert float("inf") == play.group.next_deadline
    play.beat("A", 0, ["t"])
    play.now = 10.0
    play.beat("B", 0, ["t"])
    assert 45.0 == play.group.next_deadline

    play.group.advance(45.0)
    assert ["B"] == list(play.group.members)
    assert 55.0 == play.group.next_deadline


def test_each_expired_member_raises_the_epoch():
    play = Play(t=1)
    play.beat("A", 0, ["t"])
    play.beat("B", 0, ["t"])
    before = play.group.epoch
    play.group.advance(1000.0)

    assert ("Empty", before + 2) == (play.group.state, play.group.epoch)


def test_fenced_heartbeat_does_not_extend_the_session():
    play = Play(t=1)
    play.join("A", "t")
    play.now = 40.0
    with pytest.raises(GroupError) as error:
        play.beat("A", 99)
    assert ErrorCode.fenced_member_epoch is code_of(error)

    play.group.advance(45.0)
    assert not play.group.members


def test_full_group_rejects_members():
    play = Play(Limits(max_size=1), t=1)
    play.beat("A", 0, ["t"])
    with pytest.raises(GroupError) as error:
        play.beat("B", 0, ["t"])

    assert ErrorCode.group_max_size_reached is code_of(error)
    assert "capacity of 1 members" in error.value.message
    assert play.beat("A", 0, ["t"]).member_epoch
    assert ["A"] == list(play.group.members)


def test_missing_topic_is_assigned_once_it_exists():
    play = Play()
    play.join("A", "later")
    assert {} == play.has("A")
    play.topics.create("later", [[1], [1]])
    epoch = play.group.epoch
    play.beat("A")
    assert epoch + 1 == play.group.epoch

    play.beat("A")
    assert {"later": [0, 1]} == play.has("A")
    assert epoch + 2 == play.group.epoch


def test_added_partitions_are_assigned():
    play = Play(t=1)
    play.join("A", "t")
    play.topics.by_name("t").add_partitions([[1], [1]])
    play.beat("A")
    play.beat("A")

    assert {"t": [0, 1, 2]} == play.has("A")


def test_deleted_topic_is_removed_at_next_heartbeat():
    play = Play(Limits(assignment_interval=1000.0), t=1, u=1)
    play.beat("A", 0, ["t", "u"])
    play.now = 1000.0
    play.limits = Limits(assignment_interval=1000.0, session_timeout=1e6)
    play.group.remove("A")
    play.beat("A", 0, ["t", "u"])
    assert {"t": [0], "u": [0]} == play.has("A")
    play.topics.delete(play.topics.by_name("t"))
    result = play.beat("A")

    assert {"u": [0]} == play.has("A")
    assert 1 == len(result.assignment)


def test_recreated_topic_is_another_topic():
    play = Play(t=1)
    old = play.join("A", "t").assignment
    play.topics.delete(play.topics.by_name("t"))
    play.topics.create("t", [[1]])
    play.beat("A")
    assert {} == play.has("A")

    play.beat("A")
    assert {"t": [0]} == play.has("A")
    assert old != play.group.members["A"].assigned


def test_rack_and_client_come_from_last_heartbeat():
    play = Play(t=1)
    play.beat("A", 0, ["t"], rack_id="r1", client_id="one", client_host="/h1")
    epoch = play.group.epoch
    play.beat("A", 0, ["t"], client_id="two", client_host="/h2")
    member = play.group.members["A"]

    assert ("r1", "two", "/h2") == (
        member.rack_id,
        member.client_id,
        member.client_host,
    )
    assert epoch + 1 == play.group.epoch  # for the partitions, not for the client


def test_duplicate_names_are_one_subscription():
    play = Play(t=1, u=1)
    play.join("A", "t", "t", "u")
    epoch = play.group.epoch
    play.beat("A", topics=["u", "t"])

    assert ("t", "u") == play.group.members["A"].topics
    assert epoch == play.group.epoch


def test_member_without_topics_has_no_partitions():
    play = Play(t=1)
    play.join("A", "t")
    result = play.beat("A", topics=[])

    assert frozenset() == result.assignment
    assert "Stable" == play.group.state
