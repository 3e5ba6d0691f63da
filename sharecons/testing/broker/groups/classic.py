"""A classic consumer group: which requests it accepts in which state.

Requests are checked here; `rebalance.py` changes the group's state. Each method takes
the time and first applies what has become due by then. A task that waits for a reply
checks it again when `changed` is notified, and at `next_deadline`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.groups.members import (
    JoinResult,
    Member,
    Members,
    Protocols,
    Reply,
    SyncResult,
)
from sharecons.testing.broker.groups.offset_checks import OffsetChecks
from sharecons.testing.broker.groups.offset_expiry import OffsetExpiry
from sharecons.testing.broker.groups.offsets import GroupOffsets
from sharecons.testing.broker.groups.rebalance import CONSUMER, Rebalance, State
from sharecons.testing.broker.signals import Signal

__all__ = ["ClassicGroup", "JoinRequest", "State", "SyncRequest"]

NO_MAX_SIZE: Final = 2**31 - 1  # Kafka's group.max.size


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A JoinGroup request of a new or present member."""

    member_id: str = ""
    new_id: str
    """The member id to assign if the request has none."""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout: float
    rebalance_timeout: float
    protocol_type: str
    protocols: Protocols
    id_required: bool = True
    """Whether a new member has to rejoin with its assigned id (KIP-394)."""
    may_skip_assignment: bool = True
    """Whether the leader knows that it can skip the assignment (KIP-814)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """A SyncGroup request: a member requests its assignment; the leader sends all."""

    member_id: str
    group_instance_id: str | None = None
    generation_id: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes]


class ClassicGroup:
    def __init__(
        self,
        group_id: str,
        *,
        initial_delay: float = 0.0,
        max_size: int = NO_MAX_SIZE,
        offset_checks: OffsetChecks | None = None,
    ) -> None:
        self.group_id = group_id
        self.offsets = GroupOffsets()
        self.changed = Signal()
        """Notified when a reply might have been set, or a deadline might have moved."""
        self._max_size = max_size
        self._rebalance = Rebalance(initial_delay)
        self._expiry = OffsetExpiry(
            offset_checks or OffsetChecks(), self.offsets, self._rebalance
        )

    @property
    def is_deleted(self) -> bool:
        """Return whether the group has expired: it had no members and no offsets."""
        return self._expiry.has_deleted_group

    @property
    def state(self) -> State:
        return self._rebalance.state

    @property
    def generation_id(self) -> int:
        return self._rebalance.generation_id

    @property
    def members(self) -> Members:
        return self._rebalance.members

    @property
    def protocol_type(self) -> str | None:
        return self.members.protocol_type

    @property
    def protocol_name(self) -> str | None:
        return self._rebalance.protocol_name

    @property
    def next_deadline(self) -> float:
        return min(self._rebalance.next_deadline, self._expiry.next_check)

    def advance(self, now: float) -> None:
        """Apply what has become due by now, in the order of time."""
        while (due := self.next_deadline) <= now:
            if self._expiry.next_check <= due:
                self._expiry.check(due)
            else:
                self._expiry.skip_until(due)
                self._rebalance.apply_due(due)
            self.changed.notify()
        self._expiry.skip_until(now)

    def join(self, request: JoinRequest, now: float) -> Reply[JoinResult]:
        """Join or rejoin; the reply can take as long as a rebalance."""
        self.advance(now)
        reply: Reply[JoinResult] = Reply()
        try:
            self._join(request, reply, now)
        except GroupError as error:
            reply.result = JoinResult(error=error.code, member_id=request.member_id)
        self.changed.notify()
        self.advance(now)
        return reply

    def sync(self, request: SyncRequest, now: float) -> Reply[SyncResult]:
        """Return a reply for an assignment, which might have to wait for the leader.

        Raises:
            GroupError: the member or generation is unknown, or the group rebalances.
        """
        self.advance(now)
        member = self._check_generation(
            request.member_id, request.group_instance_id, request.generation_id
        )
        if not self._names_protocol(request):
            raise GroupError(ErrorCode.inconsistent_group_protocol)
        if self.state is State.PREPARING:
            raise GroupError(ErrorCode.rebalance_in_progress)
        self._rebalance.note_sync(member)
        if self.state is State.STABLE:
            return Reply(self._rebalance.sync_result(member))
        reply = member.syncing = Reply()
        if member.member_id == self.members.leader:
            self._rebalance.set_assignments(dict(request.assignments), now)
        self.changed.notify()
        return reply

    def heartbeat(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        now: float,
    ) -> None:
        """Restart a member's session.

        Raises:
            GroupError: the member or generation is unknown; or the member has to
                rejoin, although its session continues.
        """
        self.advance(now)
        member = self._check_generation(member_id, group_instance_id, generation_id)
        self._rebalance.restart_session(member, now)
        self.changed.notify()
        if self.state is State.PREPARING:
            raise GroupError(ErrorCode.rebalance_in_progress)

    def leave(
        self, leaving: Iterable[tuple[str, str | None]], now: float
    ) -> list[ErrorCode]:
        """Remove members by member id or instance id; return each one's error."""
        self.advance(now)
        codes = [self._leave(*who) for who in leaving]
        if ErrorCode.none in codes:
            if self.state is State.PREPARING:
                self._rebalance.maybe_complete(now)
            elif self.state is not State.EMPTY:
                self._rebalance.rebalance(now)
        self.changed.notify()
        return codes

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        now: float,
        *,
        transactional: bool = False,
    ) -> None:
        """Check whether offsets can be committed. A member's commit is a heartbeat.

        Raises:
            GroupError: they cannot.
        """
        self.advance(now)
        empty = self.state is State.EMPTY
        if generation_id < 0 and empty:
            return
        named = generation_id >= 0 or member_id or group_instance_id is not None
        if named:
            self._check_generation(member_id, group_instance_id, generation_id)
        elif not transactional:
            raise GroupError(ErrorCode.unknown_member_id)
        if transactional:
            return
        if self.state is State.COMPLETING:
            raise GroupError(ErrorCode.rebalance_in_progress)
        self._rebalance.restart_session(self.members[member_id], now)

    def transaction_ended(self, producer_id: int, committed: bool) -> None:
        """Commit or discard the pending offsets of a transaction."""
        self.offsets.end_transaction(producer_id, committed)

    def check_delete(self) -> None:
        """Check whether the group can be deleted.

        Raises:
            GroupError: it has members.
        """
        if self.state is not State.EMPTY:
            raise GroupError(ErrorCode.non_empty_group)

    def check_offset_delete(self) -> None:
        """Check whether single offsets can be deleted.

        Raises:
            GroupError: the group has members with unknown subscriptions.
        """
        if self.protocol_type != CONSUMER:
            self.check_delete()

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member might be subscribed to a topic."""
        return self._rebalance.is_subscribed(topic)

    def drop_request(self, reply: object, now: float) -> None:
        """Drop a waiting request, because another broker coordinates the group now."""
        for member in self.members:
            if reply in (member.joining, member.syncing):
                member.joining = member.syncing = None
                self._rebalance.restart_session(member, now)

    def _check_generation(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> Member:
        member = self.members.get(member_id, group_instance_id)
        if generation_id != self.generation_id:
            raise GroupError(ErrorCode.illegal_generation)
        return member

    def _names_protocol(self, request: SyncRequest) -> bool:
        """Return whether the protocol named, if any, is the chosen one (KIP-559)."""
        return request.protocol_type in (None, self.protocol_type) and (
            request.protocol_name in (None, self.protocol_name)
        )

    def _join(self, request: JoinRequest, reply: Reply[JoinResult], now: float) -> None:
        if not self._fits(request.member_id):
            self.members.remove(request.member_id)
            reply.result = JoinResult(error=ErrorCode.group_max_size_reached)
            return
        names = [name for name, _ in request.protocols]
        if not self._accepts(request.protocol_type, names):
            raise GroupError(ErrorCode.inconsistent_group_protocol)
        if request.member_id:
            self._rejoin(request, reply, now)
        elif self.members.static_member_id(request.group_instance_id) is not None:
            self._rejoin_static(request, reply, now)
        elif request.group_instance_id is None and request.id_required:
            self.members.pending[request.new_id] = now + request.session_timeout
            reply.result = JoinResult(
                error=ErrorCode.member_id_required, member_id=request.new_id
            )
        else:
            self._add(request.new_id, request, reply, now)

    def _fits(self, member_id: str) -> bool:
        """Return whether a request with this member id fits into the group.

        During a rebalance the members that have joined count: if the limit has become
        lower, the last ones do not fit.
        """
        if self.state is not State.PREPARING:
            return member_id in self.members or len(self.members) < self._max_size
        known = member_id in self.members
        waits = known and self.members[member_id].joining is not None
        return waits or self.members.joining < self._max_size

    def _accepts(self, protocol_type: str, names: Sequence[str]) -> bool:
        if self.state is State.EMPTY:
            return bool(protocol_type and names)
        return self.members.supports(protocol_type, names)

    def _rejoin(
        self, request: JoinRequest, reply: Reply[JoinResult], now: float
    ) -> None:
        if request.member_id in self.members.pending:
            if request.group_instance_id is not None:
                # A static member never gets MEMBER_ID_REQUIRED.
                raise GroupError(ErrorCode.unknown_server_error)
            self._add(request.member_id, request, reply, now)
            return
        member = self.members.get(request.member_id, request.group_instance_id)
        same = member.protocols == request.protocols
        # A leader that rejoins wants a new assignment, for example for new partitions.
        leads = member.member_id == self.members.leader
        is_settled = self.state is State.COMPLETING or (
            self.state is State.STABLE and not leads
        )
        if same and is_settled:
            reply.result = self._rebalance.join_result(member)
            return
        self._update(member, request, reply)
        self._rebalance.rebalance(now)

    def _add(
        self, member_id: str, request: JoinRequest, reply: Reply[JoinResult], now: float
    ) -> None:
        member = Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout=request.session_timeout,
            rebalance_timeout=request.rebalance_timeout,
            protocols=request.protocols,
            is_new=True,
            joining=reply,
        )
        self._rebalance.add_member(member, request.protocol_type, now)

    def _rejoin_static(
        self, request: JoinRequest, reply: Reply[JoinResult], now: float
    ) -> None:
        """Continue a static member under its new id (KIP-345)."""
        old_id = self.members.static_member_id(request.group_instance_id) or ""
        old_leader = self.members.leader or ""
        member = self.members.replace(old_id, request.new_id)
        self._rebalance.restart_session(member, now)
        self._update(member, request, reply)
        same = self.state is State.STABLE and (
            self.members.choose_protocol() == self.protocol_name
        )
        if not same:
            self._rebalance.rebalance(now)
        elif request.may_skip_assignment:
            leads = member.member_id == self.members.leader
            result = self._rebalance.join_result(member)
            member.end_join(replace(result, skip_assignment=leads))
        else:
            # With its old id as the leader, the client acts as a follower and assigns
            # nothing.
            result = self._rebalance.join_result(member)
            member.end_join(replace(result, leader=old_leader, members=()))

    def _update(
        self, member: Member, request: JoinRequest, reply: Reply[JoinResult]
    ) -> None:
        member.protocols = request.protocols
        member.session_timeout = request.session_timeout
        member.rebalance_timeout = request.rebalance_timeout
        member.joining = reply

    def _leave(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Remove a member; administrators name only its instance id (KIP-345)."""
        if not member_id:
            member_id = self.members.static_member_id(group_instance_id) or ""
        if member_id in self.members.pending:
            self.members.remove(member_id)
            return ErrorCode.none
        try:
            self._rebalance.remove_member(
                self.members.get(member_id, group_instance_id)
            )
        except GroupError as error:
            return error.code
        return ErrorCode.none
