"""A share group's members and their assignment (KIP-932, "Group membership").

Three epochs count up. The group epoch rises when members, subscriptions or subscribed
topics change. The assignment epoch follows: a heartbeat that finds it behind computes a
new assignment, but not within the assignment interval after the last (KIP-1263). The
member epoch is the assignment epoch as of the member's last heartbeat. Partitions are
not revoked in steps: a member has its new assignment immediately.

A partition is assigned only once the group's state of it has been initialised. In Kafka
that is a request to another broker, sent after the first heartbeat that names the
topic. So the response to that heartbeat never has the topic's partitions, and the next
one raises the group epoch: a new group waits for the assignment interval.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.share.assignor import Assignment, TopicPartition, assign
from sharecons.testing.broker.topics import Topics

__all__ = [
    "JOIN",
    "LEAVE",
    "Heartbeat",
    "HeartbeatResult",
    "Limits",
    "Member",
    "ShareGroup",
]

JOIN: Final = 0
LEAVE: Final = -1

TopicShape: TypeAlias = tuple[uuid.UUID, int]
"""A topic's id and its number of partitions; a change of either is noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A member's heartbeat; None means unchanged."""

    member_id: str
    member_epoch: int
    rack_id: str | None = None
    topics: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The group's settings, times in seconds; Kafka's defaults."""

    session_timeout: float = 45.0
    assignment_interval: float = 1.0
    max_size: int = 200


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """The response to a heartbeat; an assignment of None means unchanged."""

    member_epoch: int
    assignment: Assignment | None
    initialized: Assignment = frozenset()
    """The partitions whose state has to be initialised now."""


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
    """The time at which its session ends."""


class ShareGroup:
    """A share group. share/partitions.py has the state of its partitions."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members: dict[str, Member] = {}
        self.epoch = 1
        self.assignment_epoch = 1
        self.initialized: set[TopicPartition] = set()
        """The partitions whose state has been initialised."""
        self._target_assignment: dict[str, Assignment] = {}
        self._assigned_at = float("-inf")
        self._known_topics: dict[str, TopicShape] = {}

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def next_deadline(self) -> float:
        """The time at which the next member's session ends."""
        deadlines = (member.deadline for member in self.members.values())
        return min(deadlines, default=float("inf"))

    def advance(self, now: float) -> None:
        """Remove the members whose session has timed out."""
        expired = [each for each in self.members.values() if each.deadline <= now]
        for member in expired:
            self.remove(member.member_id)

    def heartbeat(
        self, heartbeat: Heartbeat, topics: Topics, limits: Limits, now: float
    ) -> HeartbeatResult:
        """Process a heartbeat of a new or present member.

        Raises:
            GroupError: the member or its epoch is unknown; nothing changes.
        """
        self.advance(now)
        member = self._find_or_add(heartbeat, limits)
        has_new_topics = _update_member(member, heartbeat)
        member.deadline = now + limits.session_timeout
        known = self._existing_topics(topics)
        if has_new_topics or known != self._known_topics or self._has_unassigned(known):
            self.epoch += 1
            self._known_topics = known
        if self._is_assignment_due(now, limits):
            self._assign(known, now)
        changed = self._reconcile(member, known)
        full = heartbeat.member_epoch == JOIN or heartbeat.topics is not None
        return HeartbeatResult(
            member.epoch,
            member.assigned if full or changed else None,
            self._initialize(known),
        )

    def leave(self, member_id: str, now: float) -> None:
        """Remove a member. The records that it has acquired stay locked.

        Raises:
            GroupError: the member is unknown.
        """
        self.advance(now)
        if member_id not in self.members:
            raise self._unknown_member(member_id)
        self.remove(member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member, as its session timeout does.

        Raises:
            KeyError: there is no such member.
        """
        del self.members[member_id]
        self._target_assignment.pop(member_id, None)
        self.epoch += 1
        left = {name for member in self.members.values() for name in member.topics}
        self._known_topics = {
            name: at for name, at in self._known_topics.items() if name in left
        }

    def _find_or_add(self, heartbeat: Heartbeat, limits: Limits) -> Member:
        member = self.members.get(heartbeat.member_id)
        if member is None:
            return self._add_member(heartbeat, limits)
        _check_epoch(member, heartbeat.member_epoch)
        return member

    def _add_member(self, heartbeat: Heartbeat, limits: Limits) -> Member:
        if len(self.members) >= limits.max_size:
            raise GroupError(
                ErrorCode.group_max_size_reached,
                f"The share group has reached its maximum capacity of "
                f"{limits.max_size} members.",
            )
        if heartbeat.member_epoch != JOIN:
            raise self._unknown_member(heartbeat.member_id)
        member = Member(member_id=heartbeat.member_id)
        self.members[heartbeat.member_id] = member
        return member

    def _unknown_member(self, member_id: str) -> GroupError:
        return GroupError(
            ErrorCode.unknown_member_id,
            f"Member {member_id} is not a member of group {self.group_id}.",
        )

    def _existing_topics(self, topics: Topics) -> dict[str, TopicShape]:
        """Return the subscribed topics that exist."""
        known: dict[str, TopicShape] = {}
        for member in self.members.values():
            for name in member.topics:
                if topic := topics.by_name(name):
                    known[name] = (topic.topic_id, len(topic.partitions))
        return known

    def _has_unassigned(self, known: Mapping[str, TopicShape]) -> bool:
        """Return whether initialised partitions are not assigned yet."""
        if self.epoch > self.assignment_epoch:
            return False
        assigned = frozenset[TopicPartition]().union(*self._target_assignment.values())
        wanted = {topic_id for topic_id, _ in known.values()}
        return any(
            each not in assigned for each in self.initialized if each[0] in wanted
        )

    def _is_assignment_due(self, now: float, limits: Limits) -> bool:
        ready = now >= self._assigned_at + limits.assignment_interval
        return ready and self.epoch > self.assignment_epoch

    def _assign(self, known: Mapping[str, TopicShape], now: float) -> None:
        subscriptions = {
            member_id: _topic_ids(member, known)
            for member_id, member in self.members.items()
        }
        partitions: dict[uuid.UUID, list[int]] = {at: [] for at, _ in known.values()}
        for topic_id, index in self.initialized:
            if topic_id in partitions:
                partitions[topic_id].append(index)
        self._target_assignment = assign(
            subscriptions, partitions, self._target_assignment
        )
        self._assigned_at = now
        self.assignment_epoch = self.epoch

    def _reconcile(self, member: Member, known: Mapping[str, TopicShape]) -> bool:
        """Update a member to the assignment; return whether its partitions changed.

        Topics that it has unsubscribed are removed immediately.
        """
        if member.epoch != self.assignment_epoch:
            member.previous_epoch = member.epoch
            member.epoch = self.assignment_epoch
        wanted = _topic_ids(member, known)
        before = member.assigned
        target = self._target_assignment.get(member.member_id, frozenset())
        member.assigned = frozenset(each for each in target if each[0] in wanted)
        return member.assigned != before

    def _initialize(self, known: Mapping[str, TopicShape]) -> Assignment:
        """Return the partitions that are not initialised yet, and mark them."""
        wanted = {
            (topic_id, index)
            for topic_id, count in known.values()
            for index in range(count)
        }
        added = frozenset(wanted - self.initialized)
        self.initialized |= added
        return added


def _update_member(member: Member, heartbeat: Heartbeat) -> bool:
    """Update a member by its heartbeat; return whether its topics changed."""
    member.client_id, member.client_host = heartbeat.client_id, heartbeat.client_host
    if heartbeat.rack_id is not None:
        member.rack_id = heartbeat.rack_id
    if heartbeat.topics is None or set(heartbeat.topics) == set(member.topics):
        return False
    member.topics = tuple(dict.fromkeys(heartbeat.topics))
    return True


def _topic_ids(member: Member, known: Mapping[str, TopicShape]) -> frozenset[uuid.UUID]:
    return frozenset(known[name][0] for name in member.topics if name in known)


def _check_epoch(member: Member, epoch: int) -> None:
    """Accept the current epoch, the previous one (a lost response), and 0."""
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
