"""The members of a classic group: who is in it, who leads, what all of them speak.

Rule 1: members come and go here; when they must is for `classic.py` to say.
Rule 2: no member id is made up here: they come in with what is asked.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.groups.errors import GroupError

__all__ = [
    "Joined",
    "JoinedMember",
    "Member",
    "Members",
    "Protocols",
    "Reply",
    "Synced",
]

AnswerT = TypeVar("AnswerT")

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""Names and metadata, those that a member likes best first."""


class Reply(Generic[AnswerT]):
    """An answer, once there is one."""

    __slots__ = ("answer",)

    def __init__(self, answer: AnswerT | None = None) -> None:
        self.answer = answer


class JoinedMember(NamedTuple):
    """What the leader is told of a member."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """How a JoinGroup ends."""

    error: ErrorCode = ErrorCode.none
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()
    """All members, for the leader; nobody else is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """How a SyncGroup ends."""

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
    expires: float = math.inf
    is_new: bool = False
    """It has not seen the end of its first JoinGroup yet."""
    joining: Reply[Joined] | None = None
    """The JoinGroup that is parked for it."""
    syncing: Reply[Synced] | None = None

    @property
    def keeps_quiet(self) -> bool:
        """It waits for the group, and so cannot send heartbeats.

        A new member does so too, but is given up after a while: a client that retries
        without a member id would leave one behind each time.
        """
        return not self.is_new and (self.joining or self.syncing) is not None

    def metadata(self, protocol: str | None) -> bytes:
        return dict(self.protocols).get(protocol or "", b"")

    def vote(self, candidates: set[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    def end_join(self, answer: Joined) -> None:
        """Answer the JoinGroup that is parked for it, if there is one."""
        if self.joining is not None:
            self.joining.answer = answer
            self.joining = None

    def end_sync(self, answer: Synced) -> bool:
        """Answer the SyncGroup that is parked for it; tell whether there was one."""
        if self.syncing is None:
            return False
        self.syncing.answer = answer
        self.syncing = None
        return True


@dataclass(slots=True)
class Members:
    """All members of one group, those who came first in front."""

    protocol_type: str | None = None
    leader: str | None = None
    pending: dict[str, float] = field(default_factory=dict)
    """Ids given out by MEMBER_ID_REQUIRED (KIP-394), and when each expires."""
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
        """The longest that any of them asks for."""
        return max((member.rebalance_timeout for member in self), default=0.0)

    @property
    def joining(self) -> int:
        return sum(member.joining is not None for member in self)

    @property
    def all_joined(self) -> bool:
        return not self.pending and self.joining == len(self)

    def static(self, group_instance_id: str | None) -> str | None:
        """Give the member id of a static member (KIP-345)."""
        return self._static.get(group_instance_id or "")

    def known(self, member_id: str, group_instance_id: str | None) -> Member:
        """Give a member, if it is the one that it says it is.

        Raises:
            GroupError: nobody has that id, or another has its instance id now.
        """
        if group_instance_id is not None:
            current = self.static(group_instance_id)
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
        """Let a member go, or an id that was given out; another may lead from now."""
        member = self._members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            self._static.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
        self.pending.pop(member_id, None)

    def replace(self, old_id: str, new_id: str) -> Member:
        """Let a static member come back under a new id; its old self is fenced."""
        old = self._members.pop(old_id)
        fenced = ErrorCode.fenced_instance_id
        old.end_join(Joined(error=fenced, member_id=old_id))
        old.end_sync(Synced(error=fenced))
        new = replace(old, member_id=new_id, is_new=False)
        self._members[new_id] = new
        self._static[old.group_instance_id or ""] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return new

    def elect(self) -> bool:
        """Have a leader who has joined; tell whether there is one."""
        if self.leader is None:
            return False
        if self._members[self.leader].joining is None:
            joined = (member for member in self if member.joining is not None)
            leader = next(joined, None)
            if leader is None:
                return False
            self.leader = leader.member_id
        return True

    def speak(self, protocol_type: str, names: Collection[str]) -> bool:
        """Tell whether all of them speak one of these protocols."""
        if not self._members:
            return bool(protocol_type and names)
        same = self.protocol_type == protocol_type
        return same and not self._common().isdisjoint(names)

    def selected(self) -> str:
        """Choose the protocol: the one that most members would rather have."""
        common = self._common()
        votes = Counter(member.vote(common) for member in self)
        return votes.most_common(1)[0][0]

    def _common(self) -> set[str]:
        spoken = Counter(name for member in self for name in dict(member.protocols))
        return {name for name, count in spoken.items() if count == len(self)}
