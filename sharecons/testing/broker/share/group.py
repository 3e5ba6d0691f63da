"""A share group's members and what they are assigned (KIP-932, "Group membership").

Three epochs count up. The group's goes up whenever members, subscriptions or subscribed
topics change. The assignment's follows: a heartbeat that finds it behind makes a new
assignment, but not within the assignment interval after the last (KIP-1263). A member's
is the assignment's as of its last heartbeat; it is how member and group know that they
mean the same. Nothing is revoked in steps: a member has its new assignment at once.

A partition is assigned only once the group's state of it has been initialised. In Kafka
that is a request to another broker, made after the first heartbeat that speaks of the
topic; so the answer to that one never has the topic's partitions, and the next one
raises the group's epoch. This is why a new group has to wait for the interval.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.groups.errors import GroupError
from sharecons.testing.broker.share.assignor import Assignment, TopicPartition, assign
from sharecons.testing.broker.topics import Topics

__all__ = ["JOIN", "LEAVE", "Heartbeat", "Limits", "Member", "ShareGroup", "Standing"]

JOIN: Final = 0
LEAVE: Final = -1

Shape: TypeAlias = tuple[uuid.UUID, int]
"""A topic's id and its number of partitions: what a group notices of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What a member says; None is "as before"."""

    member_id: str
    member_epoch: int
    rack_id: str | None = None
    topics: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The group's settings, in seconds; Kafka's defaults."""

    session_timeout: float = 45.0
    assignment_interval: float = 1.0
    max_size: int = 200


@dataclass(frozen=True, slots=True)
class Standing:
    """What a member is told; no assignment is "as before"."""

    member_epoch: int
    assignment: Assignment | None
    initialized: Assignment = frozenset()
    """Partitions that the group is to have state of, from now on."""


@dataclass(slots=True, kw_only=True)
class Member:
    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    assigned: Assignment = frozenset()
    deadline: float = 0.0
    """When it is taken for dead."""


class ShareGroup:
    """One share group; its partitions' state is elsewhere (share/partitions.py)."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members: dict[str, Member] = {}
        self.epoch = 1
        self.assignment_epoch = 1
        self.initialized: set[TopicPartition] = set()
        """The partitions that the group has state of."""
        self._target: dict[str, Assignment] = {}
        self._assigned_at = float("-inf")
        self._seen: dict[str, Shape] = {}

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def next_deadline(self) -> float:
        """When the next member is taken for dead, unless it is heard of."""
        deadlines = (member.deadline for member in self.members.values())
        return min(deadlines, default=float("inf"))

    def advance(self, now: float) -> None:
        """Give up the members that have been silent for too long."""
        dead = [each for each in self.members.values() if each.deadline <= now]
        for member in dead:
            self.forget(member.member_id)

    def heartbeat(
        self, beat: Heartbeat, topics: Topics, limits: Limits, now: float
    ) -> Standing:
        """Let a member join, or stay.

        Raises:
            GroupError: it is not a member, or not as of this epoch; nothing changes.
        """
        self.advance(now)
        member = self._admitted(beat, limits)
        resubscribed = _updated(member, beat)
        member.deadline = now + limits.session_timeout
        known = self._known(topics)
        if resubscribed or known != self._seen or self._is_pending(known):
            self.epoch += 1
            self._seen = known
        if self._is_due(now, limits):
            self._assign(known, now)
        changed = self._reconciled(member, known)
        full = beat.member_epoch == JOIN or beat.topics is not None
        return Standing(
            member.epoch,
            member.assigned if full or changed else None,
            self._initialize(known),
        )

    def leave(self, member_id: str, now: float) -> None:
        """Let a member go. What it had acquired stays locked for it.

        Raises:
            GroupError: it is none.
        """
        self.advance(now)
        if member_id not in self.members:
            raise self._unknown(member_id)
        self.forget(member_id)

    def forget(self, member_id: str) -> None:
        """Give a member up, as one that is dead.

        Raises:
            KeyError: there is no such member.
        """
        del self.members[member_id]
        self._target.pop(member_id, None)
        self.epoch += 1
        left = {name for member in self.members.values() for name in member.topics}
        self._seen = {name: at for name, at in self._seen.items() if name in left}

    def _admitted(self, beat: Heartbeat, limits: Limits) -> Member:
        member = self.members.get(beat.member_id)
        if member is None:
            return self._joined(beat, limits)
        _check_epoch(member, beat.member_epoch)
        return member

    def _joined(self, beat: Heartbeat, limits: Limits) -> Member:
        if len(self.members) >= limits.max_size:
            raise GroupError(
                ErrorCode.group_max_size_reached,
                f"The share group has reached its maximum capacity of "
                f"{limits.max_size} members.",
            )
        if beat.member_epoch != JOIN:
            raise self._unknown(beat.member_id)
        member = Member(member_id=beat.member_id)
        self.members[beat.member_id] = member
        return member

    def _unknown(self, member_id: str) -> GroupError:
        return GroupError(
            ErrorCode.unknown_member_id,
            f"Member {member_id} is not a member of group {self.group_id}.",
        )

    def _known(self, topics: Topics) -> dict[str, Shape]:
        """Give the subscribed topics that there are; the others are awaited."""
        known: dict[str, Shape] = {}
        for member in self.members.values():
            for name in member.topics:
                if topic := topics.named(name):
                    known[name] = (topic.topic_id, len(topic.partitions))
        return known

    def _is_pending(self, known: Mapping[str, Shape]) -> bool:
        """Tell whether partitions were initialised that nobody is assigned."""
        if self.epoch > self.assignment_epoch:
            return False
        assigned = frozenset[TopicPartition]().union(*self._target.values())
        wanted = {topic_id for topic_id, _ in known.values()}
        return any(
            each not in assigned for each in self.initialized if each[0] in wanted
        )

    def _is_due(self, now: float, limits: Limits) -> bool:
        ready = now >= self._assigned_at + limits.assignment_interval
        return ready and self.epoch > self.assignment_epoch

    def _assign(self, known: Mapping[str, Shape], now: float) -> None:
        subscriptions = {
            member_id: _topic_ids(member, known)
            for member_id, member in self.members.items()
        }
        partitions: dict[uuid.UUID, list[int]] = {at: [] for at, _ in known.values()}
        for topic_id, index in self.initialized:
            if topic_id in partitions:
                partitions[topic_id].append(index)
        self._target = assign(subscriptions, partitions, self._target)
        self._assigned_at = now
        self.assignment_epoch = self.epoch

    def _reconciled(self, member: Member, known: Mapping[str, Shape]) -> bool:
        """Bring a member up to the assignment; tell whether it has other partitions.

        What it no longer subscribes to goes at once, even before the next assignment.
        """
        if member.epoch != self.assignment_epoch:
            member.previous_epoch = member.epoch
            member.epoch = self.assignment_epoch
        wanted = _topic_ids(member, known)
        before = member.assigned
        target = self._target.get(member.member_id, frozenset())
        member.assigned = frozenset(each for each in target if each[0] in wanted)
        return member.assigned != before

    def _initialize(self, known: Mapping[str, Shape]) -> Assignment:
        """Give the partitions that there was no state of before."""
        wanted = {
            (topic_id, index)
            for topic_id, count in known.values()
            for index in range(count)
        }
        added = frozenset(wanted - self.initialized)
        self.initialized |= added
        return added


def _updated(member: Member, beat: Heartbeat) -> bool:
    """Take over what the heartbeat says; tell whether it wants other topics."""
    member.client_id, member.client_host = beat.client_id, beat.client_host
    if beat.rack_id is not None:
        member.rack_id = beat.rack_id
    if beat.topics is None or set(beat.topics) == set(member.topics):
        return False
    member.topics = tuple(dict.fromkeys(beat.topics))
    return True


def _topic_ids(member: Member, known: Mapping[str, Shape]) -> frozenset[uuid.UUID]:
    return frozenset(known[name][0] for name in member.topics if name in known)


def _check_epoch(member: Member, epoch: int) -> None:
    """Accept the current epoch, the one before (its answer may be lost), and 0."""
    if epoch in (JOIN, member.epoch, member.previous_epoch):
        return
    known = f"than the one known by the group coordinator ({member.epoch})"
    rejoin = "The member must abandon all its partitions and rejoin."
    if epoch > member.epoch:
        raise GroupError(
            ErrorCode.fenced_member_epoch,
            f"The share group member has a greater member epoch ({epoch}) {known}. "
            f"{rejoin}",
        )
    raise GroupError(
        ErrorCode.fenced_member_epoch,
        f"The share group member has a smaller member epoch ({epoch}) {known}, and it "
        f"does not match the previous member epoch ({member.previous_epoch}). {rejoin}",
    )
