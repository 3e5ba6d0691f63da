"""The rebalance of a classic group: from one generation to the next.

When a member joins or leaves, a rebalance begins: every member has to rejoin, and its
JoinGroup waits until all have joined, or until the longest of their rebalance timeouts
is over; late dynamic members are removed. Then a leader and a protocol are chosen, the
generation increases, and every JoinGroup is answered. Now the members send SyncGroup
for their assignments, which the leader's SyncGroup contains. The states:

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable
    CompletingRebalance, Stable -> PreparingRebalance
    PreparingRebalance -> Empty

There are no timers: `ClassicGroup.advance` applies what is due, as of its due time.
"""

import math
from enum import StrEnum
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.groups.members import (
    Joined,
    JoinedMember,
    Member,
    Members,
    Synced,
)
from sharecons.testing.broker.groups.subscription import topics_of

__all__ = ["CONSUMER", "NEW_MEMBER_TIMEOUT", "Rebalance", "State"]

CONSUMER: Final = "consumer"  # the protocol type whose metadata Kafka parses
NEW_MEMBER_TIMEOUT: Final = 300.0  # seconds; a constant in Kafka, too
TICK: Final = 0.001  # Kafka's shortest timer; a timeout of 0 must not spin


class State(StrEnum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class Rebalance:
    """The state, generation, members and deadlines of one group."""

    def __init__(self, initial_delay: float) -> None:
        self.members = Members()
        self.state = State.EMPTY
        self.generation_id = 0
        self.protocol_name: str | None = None
        self.subscribed: frozenset[str] | None = None
        """The topics of all members; None if their metadata cannot be parsed."""
        self._initial_delay = initial_delay
        self._delay_left = 0.0
        self._is_initial = False
        self._joined_meanwhile = False
        self._join_due = math.inf
        self._sync_due = math.inf
        self._not_synced: set[str] = set()

    @property
    def next_deadline(self) -> float:
        sessions = (member.expires for member in self.members)
        pending = self.members.pending.values()
        return min(self._join_due, self._sync_due, *sessions, *pending)

    def came_due(self, at: float) -> None:
        """Apply what is due at the next deadline, `at`."""
        if self._join_due <= at:
            self._join_due = math.inf
            self._join_time_over(at)
        elif self._sync_due <= at:
            self._sync_due = math.inf
            self._sync_time_over(at)
        else:
            self._expire(at)

    def heard(self, member: Member, at: float) -> None:
        """Restart a member's session."""
        member.expires = at + member.session_timeout

    def added(self, member: Member, protocol_type: str, at: float) -> None:
        """Add a new member, and have all others rejoin."""
        self.members.add(member, protocol_type)
        member.expires = at + NEW_MEMBER_TIMEOUT
        self._joined_meanwhile = True
        self.rebalance(at)

    def rebalance(self, at: float) -> None:
        """Begin a rebalance; if one has begun, check whether all have joined."""
        if self.state is State.PREPARING:
            self.maybe_complete(at)
            return
        was_empty = self.state is State.EMPTY
        if self.state is State.COMPLETING:
            self._take_back_assignments(at)
        self._not_synced.clear()
        self._sync_due = math.inf
        self.state = State.PREPARING
        self._is_initial = was_empty
        if was_empty:
            self._begin_initial(at)
        else:
            self._complete_or_wait(at)

    def maybe_complete(self, at: float) -> None:
        """Complete the join if all have joined; a group's first waits for its delay."""
        if self.state is State.PREPARING and not self._is_initial:
            self._complete_if_joined(at)

    def removed(self, member: Member) -> None:
        """Remove a member, and answer its JoinGroup.

        Its SyncGroup is never answered, as in Kafka 4.3.0.
        """
        member.end_join(Joined(error=ErrorCode.unknown_member_id))
        self.members.remove(member.member_id)
        self._not_synced.discard(member.member_id)

    def synced(self, member: Member) -> None:
        """Note that a member has sent its SyncGroup."""
        self._not_synced.discard(member.member_id)
        if not self._not_synced:
            self._sync_due = math.inf

    def assigned(self, assignments: dict[str, bytes], at: float) -> None:
        """Store the leader's assignments, and answer the waiting SyncGroups."""
        self.state = State.STABLE
        for member in self.members:
            member.assignment = assignments.get(member.member_id, b"")
            if member.end_sync(self.assignment(member)):
                self.heard(member, at)

    def assignment(self, member: Member) -> Synced:
        return Synced(
            protocol_type=self.members.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def joined(self, member: Member) -> Joined:
        """Return the result of a member's JoinGroup in the current generation."""
        leads = member.member_id == self.members.leader
        return Joined(
            member_id=member.member_id,
            generation_id=self.generation_id,
            protocol_type=self.members.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.members.leader or "",
            members=self._roll() if leads else (),
        )

    def _roll(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(
                member.member_id,
                member.group_instance_id,
                member.metadata(self.protocol_name),
            )
            for member in self.members
        )

    def _begin_initial(self, at: float) -> None:
        delay = self._initial_delay
        self._join_due = at + delay
        self._delay_left = max(self.members.rebalance_timeout - delay, 0.0)
        self._joined_meanwhile = False

    def _join_time_over(self, at: float) -> None:
        if not (self._is_initial and self._joined_meanwhile and self._delay_left):
            self._complete_join(at)
            return
        # A member has joined: others may follow, so the delay starts again.
        self._joined_meanwhile = False
        delay = min(self._initial_delay, self._delay_left)
        self._delay_left = max(self._delay_left - delay, 0.0)
        self._join_due = at + delay

    def _sync_time_over(self, at: float) -> None:
        # A static member may have rejoined under another id.
        for member_id in self._not_synced & {each.member_id for each in self.members}:
            self.removed(self.members[member_id])
        self.rebalance(at)

    def _expire(self, at: float) -> None:
        """Remove the members whose session has ended."""
        pending = self.members.pending
        for member_id in [name for name, due in pending.items() if due <= at]:
            self.members.remove(member_id)
            self._complete_if_joined(at)
        for member in self.members:
            if member.expires > at:
                continue
            member.expires = math.inf
            if not member.keeps_quiet and member.member_id in self.members:
                self._lost(member, at)

    def _lost(self, member: Member, at: float) -> None:
        self.removed(member)
        if self.state is State.PREPARING:
            self._complete_if_joined(at)
        else:
            self.rebalance(at)

    def _complete_if_joined(self, at: float) -> None:
        if self.state is State.PREPARING and self.members.all_joined:
            self._complete_join(at)

    def _complete_or_wait(self, at: float) -> None:
        self._join_due = at + max(self.members.rebalance_timeout, TICK)
        self._complete_if_joined(at)

    def _complete_join(self, at: float) -> None:
        """Begin the next generation with the members that have joined."""
        self._join_due = math.inf
        for member in self.members:
            if member.joining is None and member.group_instance_id is None:
                self.members.remove(member.member_id)
        if self.members.elect() or not len(self.members):
            self._next_generation(at)
        else:
            # Only static members, and none has rejoined: they stay until they expire.
            self._join_due = at + max(self.members.rebalance_timeout, TICK)

    def _next_generation(self, at: float) -> None:
        self.generation_id += 1
        self._is_initial = False
        if not len(self.members):
            self.state, self.protocol_name = State.EMPTY, None
            self.subscribed = self._subscription()
            return
        self.state = State.COMPLETING
        self.protocol_name = self.members.selected()
        self.subscribed = self._subscription()
        self._sync_due = at + max(self.members.rebalance_timeout, TICK)
        for member in self.members:
            member.end_join(self.joined(member))
            member.is_new = False
            self.heard(member, at)
            self._not_synced.add(member.member_id)

    def _subscription(self) -> frozenset[str] | None:
        if self.members.protocol_type != CONSUMER:
            return None
        return topics_of(member.metadata(self.protocol_name) for member in self.members)

    def _take_back_assignments(self, at: float) -> None:
        for member in self.members:
            member.assignment = b""
            if member.end_sync(Synced(error=ErrorCode.rebalance_in_progress)):
                self.heard(member, at)
