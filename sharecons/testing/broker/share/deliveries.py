"""The delivery state of records in a share partition, and messages about ranges.

KIP-932, "In-flight records": a record is available, acquired by a member, and finally
acknowledged or archived. A group can have archived records written to another topic
first (KIP-1191); until then they are archiving. The numbers of the states are as in
the share coordinator's state.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from sharecons.testing.broker.codec import ErrorCode

__all__ = [
    "NO_MEMBER",
    "AcknowledgeError",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "AcquiredRecords",
    "Delivery",
    "GroupSettings",
    "State",
    "StateBatch",
]

NO_MEMBER: Final = ""
NEVER: Final = float("inf")


class State(IntEnum):
    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self is State.ACKNOWLEDGED or self is State.ARCHIVED


class AcknowledgeType(IntEnum):
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AcknowledgementBatch(NamedTuple):
    """Offsets of one entry of a request; a single type is for all of them."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]


class AcquiredRecords(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int


class StateBatch(NamedTuple):
    """A range in the share coordinator's state."""

    first_offset: int
    last_offset: int
    state: State
    delivery_count: int


class AcknowledgeError(Exception):
    """A partition's acknowledgements are rejected; none is applied."""

    def __init__(
        self, message: str, code: ErrorCode = ErrorCode.invalid_record_state
    ) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The current settings of a group that concern its share partitions."""

    lock_duration: float = 30.0
    delivery_limit: int = 5
    record_locks: int = 2000
    may_renew: bool = True
    dead_letters: bool = False
    """Whether archived records are first written to another topic."""

    @property
    def archive_state(self) -> State:
        """The state of a record that will not be delivered again."""
        return State.ARCHIVING if self.dead_letters else State.ARCHIVED

    @property
    def throttle_from(self) -> int:
        """The delivery count from which fetches acquire smaller portions."""
        return max(2, (self.delivery_limit + 1) // 2)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The state of a record. Immutable: many records share one."""

    state: State
    count: int
    member: str = NO_MEMBER
    locked_until: float = NEVER
    is_rejected: bool = False
    """Whether a member has rejected it; else it had too many deliveries."""

    def acquired(self, member: str, locked_until: float) -> "Delivery":
        return Delivery(State.ACQUIRED, self.count + 1, member, locked_until)

    def renewed(self, locked_until: float) -> "Delivery":
        return Delivery(self.state, self.count, self.member, locked_until)

    def ended(self, state: State) -> "Delivery":
        return Delivery(state, self.count)

    def rejected(self, state: State) -> "Delivery":
        return Delivery(state, self.count, is_rejected=True)

    def released(self, settings: GroupSettings) -> "Delivery":
        """Return it as available, or as archived at the delivery limit."""
        is_last = self.count >= settings.delivery_limit
        return self.ended(settings.archive_state if is_last else State.AVAILABLE)
