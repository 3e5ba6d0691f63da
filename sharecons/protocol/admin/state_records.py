"""The records in which share coordinators store state, as `wire` decodes them."""

from dataclasses import dataclass
from typing import NamedTuple

from sharecons.protocol.admin.models import StateBatch
from sharecons.protocol.partitions import SharePartition

__all__ = ["StateKey", "StateSnapshot", "StateUpdate"]


class StateKey(NamedTuple):
    """The key of a record: a share-partition of a group."""

    group_id: str
    share_partition: SharePartition


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """The whole state of a share-partition; `start_offset` is None before it is set."""

    state_epoch: int
    leader_epoch: int
    start_offset: int | None
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdate:
    """Changes of a state; None means unchanged."""

    leader_epoch: int | None
    start_offset: int | None
    batches: tuple[StateBatch, ...]
