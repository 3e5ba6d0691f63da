"""The rebalance of a classic group: from one generation to the next.

When a member joins or leaves, a rebalance begins: every member has to rejoin, and its
JoinGroup waits until all have joined, or until the longest of their rebalance timeouts
is over; late dynamic members are removed. Then a leader and a protocol are chosen, the
generation increases, and every JoinGroup gets its response. Now the members send
SyncGroup for their assignments, which the leader's SyncGroup contains. The states:

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
    JoinedMember,
    JoinResult,
    Member,
    Members,
    SyncResult,
)
from sharecons.testing.broker.groups.subscription import topics_of

__all__ = ["CONSUMER", "NEW_MEMBER_TIMEOUT", "Rebalance", "State"]

CONSUMER: Final = "consumer"  # the protocol type whose metadata Kafka parses
NEW_MEMBER_TIMEOUT: Final = 300.0  # seconds; a constant in Kafka as well
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
        self.empty_since = -math.inf
        """When the last member has left; minus infinity if there never was one."""
        self._initial_delay = initial_delay
        self._remaining_delay = 0.0
        self._is_initial = False
        self._has_new_members = False
        self._join_due = math.inf
        self._sync_due = math.inf
        self._not_synced: set[str] = set()

    @property
    def next_deadline(self) -> float:
        sessions = (member.session_deadline for member in self.members)
        pending = self.members.pending.values()
        return min(self._join_due, self._sync_due, *sessions, *pending)

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member might be subscribed to a topic."""
        if self.subscribed is None:
            return self.members.protocol_type == CONSUMER
        return topic in self.subscribed

    def apply_due(self, at: float) -> None:
        """Apply what is due at the next deadline, `at`."""
        if self._join_due <= at:
            self._join_due = math.inf
            self._end_join_delay(at)
        elif self._sync_due <= at:
            self._sync_due = math.inf
            self._end_sync_timeout(at)
        else:
            self._expire(at)

    def restart_session(self, member: Member, at: float) -> None:
        """Restart a member's session."""
        member.session_deadline = at + member.session_timeout

    def add_member(self, member: Member, protocol_type: str, at: float) -> None:
        """Add a new member, and have all others rejoin."""
        self.members.add(member, protocol_type)
        member.session_deadline = at + NEW_MEMBER_TIMEOUT
        self._has_new_members = True
        self.rebalance(at)

    def rebalance(self, at: float) -> None:
        """Begin a rebalance; if one has begun, check whether all have joined."""
        if self.state is State.PREPARING:
            self.maybe_complete(at)
            return
        was_empty = self.state is State.EMPTY
        if self.state is State.COMPLETING:
            self._clear_assignments(at)
        self._not_synced.clear()
        self._sync_due = math.inf
        self.state = State.PREPARING
        self._is_initial = was_empty
        if was_empty:
            self._begin_first(at)
        else:
            self._complete_or_wait(at)

    def maybe_complete(self, at: float) -> None:
        """Complete the join if all have joined; a group's first waits for its delay."""
        if self.state is State.PREPARING and not self._is_initial:
            self._complete_if_joined(at)

    def remove_member(self, member: Member) -> None:
        """Remove a member, and respond to its JoinGroup.

        Its SyncGroup never gets a response, as in Kafka 4.3.0.
        """
        member.end_join(JoinResult(error=ErrorCode.unknown_member_id))
        self.members.remove(member.member_id)
        self._not_synced.discard(member.member_id)

    def note_sync(self, member: Member) -> None:
        """Stop waiting for the SyncGroup of a member."""
        self._not_synced.discard(member.member_id)
        if not self._not_synced:
            self._sync_due = math.inf

    def set_assignments(self, assignments: dict[str, bytes], at: float) -> None:
        """Store the leader's assignments, and respond to the waiting SyncGroups."""
        self.state = State.STABLE
        for member in self.members:
            member.assignment = assignments.get(member.member_id, b"")
            if member.end_sync(self.sync_result(member)):
                self.restart_session(member, at)

    def sync_result(self, member: Member) -> SyncResult:
        return SyncResult(
            protocol_type=self.members.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def join_result(self, member: Member) -> JoinResult:
        """Return the result of a member's JoinGroup in the current generation."""
        leads = member.member_id == self.members.leader
        return JoinResult(
            member_id=member.member_id,
            generation_id=self.generation_id,
            protocol_type=self.members.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.members.leader or "",
            members=self._all_members() if leads else (),
        )

    def _all_members(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(
                member.member_id,
                member.group_instance_id,
                member.metadata(self.protocol_name),
            )
            for member in self.members
        )

    def _begin_first(self, at: float) -> None:
        delay = self._initial_delay
        self._join_due = at + delay
        self._remaining_delay = max(self.members.rebalance_timeout - delay, 0.0)
        self._has_new_members = False

    def _end_join_delay(self, at: float) -> None:
        if not (self._is_initial and self._has_new_members and self._remaining_delay):
            self._complete_join(at)
            return
        # A member has joined: others might follow, so the delay starts again.
        self._has_new_members = False
        delay = min(self._initial_delay, self._remaining_delay)
        self._remaining_delay = max(self._remaining_delay - delay, 0.0)
        self._join_due = at + delay

    def _end_sync_timeout(self, at: float) -> None:
        # A static member might have rejoined under another id.
        for member_id in self._not_synced & {each.member_id for each in self.members}:
            self.remove_member(self.members[member_id])
        self.rebalance(at)

    def _expire(self, at: float) -> None:
        """Remove the members whose session has ended."""
        pending = self.members.pending
        for member_id in [name for name, due in pending.items() if due <= at]:
            self.members.remove(member_id)
            self._complete_if_joined(at)
        for member in self.members:
            if member.session_deadline > at:
                continue
            member.session_deadline = math.inf
            if not member.is_waiting and member.member_id in self.members:
                self._expire_member(member, at)

    def _expire_member(self, member: Member, at: float) -> None:
        self.remove_member(member)
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
        if self.members.ensure_leader() or not len(self.members):
            self._next_generation(at)
        else:
            # Only static members, and none has rejoined: they stay until they expire.
            self._join_due = at + max(self.members.rebalance_timeout, TICK)

    def _next_generation(self, at: float) -> None:
        self.generation_id += 1
        self._is_initial = False
        if not len(self.members):
            self.state, self.protocol_name = State.EMPTY, None
            self.empty_since = at
            self.subscribed = self._subscription()
            return
        self.state = State.COMPLETING
        self.protocol_name = self.members.choose_protocol()
        self.subscribed = self._subscription()
        self._sync_due = at + max(self.members.rebalance_timeout, TICK)
        for member in self.members:
            member.end_join(self.join_result(member))
            member.is_new = False
            self.restart_session(member, at)
            self._not_synced.add(member.member_id)

    def _subscription(self) -> frozenset[str] | None:
        if self.members.protocol_type != CONSUMER:
            return None
        return topics_of(member.metadata(self.protocol_name) for member in self.members)

    def _clear_assignments(self, at: float) -> None:
        for member in self.members:
            member.assignment = b""
            if member.end_sync(SyncResult(error=ErrorCode.rebalance_in_progress)):
                self.restart_session(member, at)
