"""The members of a classic group, its leader and its protocol.

`classic.py` and `rebalance.py` decide when members join and leave. Member ids come from
the requests.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import GroupError

__all__ = [
    "JoinResult",
    "JoinedMember",
    "Member",
    "Members",
    "Protocols",
    "Reply",
    "SyncResult",
]

ResultT = TypeVar("ResultT")

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""Names and metadata, in the member's order of preference."""


class Reply(Generic[ResultT]):
    """A response that can be set later."""

    __slots__ = ("result",)

    def __init__(self, result: ResultT | None = None) -> None:
        self.result = result


class JoinedMember(NamedTuple):
    """A member in the JoinGroup response of the leader."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResult:
    """The result of a JoinGroup."""

    error: ErrorCode = ErrorCode.none
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()
    """All members, in the leader's result only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """The result of a SyncGroup."""

    error: ErrorCode = ErrorCode.none
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(slots=True, kw_only=True)
class Member:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocols: Protocols
    assignment: bytes = b""
    session_deadline: float = math.inf
    is_new: bool = False
    """Whether its first JoinGroup has no response yet."""
    joining: Reply[JoinResult] | None = None
    """Its waiting JoinGroup."""
    syncing: Reply[SyncResult] | None = None

    @property
    def is_waiting(self) -> bool:
        """True while it waits for the group, and so cannot send heartbeats.

        New members are excluded, so that they expire: a client that retries without a
        member id leaves one behind each time.
        """
        return not self.is_new and (self.joining or self.syncing) is not None

    def metadata(self, protocol: str | None) -> bytes:
        return dict(self.protocols).get(protocol or "", b"")

    def preferred(self, candidates: set[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    def end_join(self, result: JoinResult) -> None:
        """Respond to the member's waiting JoinGroup, if there is one."""
        if self.joining is not None:
            self.joining.result = result
            self.joining = None

    def end_sync(self, result: SyncResult) -> bool:
        """Respond to the member's waiting SyncGroup; return whether there was one."""
        if self.syncing is None:
            return False
        self.syncing.result = result
        self.syncing = None
        return True


@dataclass(slots=True)
class Members:
    """All members of one group, in the order of joining."""

    protocol_type: str | None = None
    leader: str | None = None
    pending: dict[str, float] = field(default_factory=dict)
    """Ids assigned by MEMBER_ID_REQUIRED (KIP-394), and the time each expires."""
    _members: dict[str, Member] = field(default_factory=dict)
    _static: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    @property
    def rebalance_timeout(self) -> float:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout for member in self), default=0.0)

    @property
    def joining(self) -> int:
        return sum(member.joining is not None for member in self)

    @property
    def all_joined(self) -> bool:
        return not self.pending and self.joining == len(self)

    def static_member_id(self, group_instance_id: str | None) -> str | None:
        """Return the member id of a static member (KIP-345), or None."""
        return self._static.get(group_instance_id or "")

    def get(self, member_id: str, group_instance_id: str | None) -> Member:
        """Return a member by its member id, and its instance id if it has one.

        Raises:
            GroupError: the member id is unknown, or the instance id has another one.
        """
        if group_instance_id is not None:
            current = self.static_member_id(group_instance_id)
            if current is None:
                raise GroupError(ErrorCode.unknown_member_id)
            if current != member_id:
                raise GroupError(ErrorCode.fenced_instance_id)
        if member_id not in self._members:
            raise GroupError(ErrorCode.unknown_member_id)
        return self._members[member_id]

    def add(self, member: Member, protocol_type: str) -> None:
        if not self._members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        self._members[member.member_id] = member
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id; another member can become the leader."""
        member = self._members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            self._static.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
        self.pending.pop(member_id, None)

    def replace(self, old_id: str, new_id: str) -> Member:
        """Replace the id of a static member; requests of the old id are fenced."""
        old = self._members.pop(old_id)
        fenced = ErrorCode.fenced_instance_id
        old.end_join(JoinResult(error=fenced, member_id=old_id))
        old.end_sync(SyncResult(error=fenced))
        new = replace(old, member_id=new_id, is_new=False)
        self._members[new_id] = new
        self._static[old.group_instance_id or ""] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return new

    def ensure_leader(self) -> bool:
        """Ensure that the leader has joined; return False if no member has."""
        if self.leader is None:
            return False
        if self._members[self.leader].joining is None:
            joined = (member for member in self if member.joining is not None)
            leader = next(joined, None)
            if leader is None:
                return False
            self.leader = leader.member_id
        return True

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether all members support one of these protocols."""
        if not self._members:
            return bool(protocol_type and names)
        same = self.protocol_type == protocol_type
        return same and not self._common_protocols().isdisjoint(names)

    def choose_protocol(self) -> str:
        """Choose the protocol that most members prefer."""
        common = self._common_protocols()
        votes = Counter(member.preferred(common) for member in self)
        return votes.most_common(1)[0][0]

    def _common_protocols(self) -> set[str]:
        counts = Counter(name for member in self for name in dict(member.protocols))
        return {name for name, count in counts.items() if count == len(self)}
