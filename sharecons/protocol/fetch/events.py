"""The events of a leader, which its driver handles."""

from dataclasses import dataclass
from typing import NamedTuple

from sharecons.errors import Error
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.positions import OffsetRange, count_offsets
from sharecons.protocol.fetch.retried_errors import (
    AcksAccepted,
    AcksRejected,
    FetchAccepted,
    FetchRejected,
    PartitionFetched,
    PartitionRetried,
)
from sharecons.protocol.partitions import Endpoint, PartitionLeader, SharePartition

__all__ = [
    "Acquired",
    "EndpointsLearned",
    "FatalError",
    "FetchRecovered",
    "LeaderEvent",
    "LeaderMoved",
    "LocksLost",
    "MetadataStale",
    "PartitionError",
    "Stalled",
    "StartsFixed",
    "Throttled",
    "UnexpectedResponse",
    "lost_count",
    "lost_ranges",
]


@dataclass(init=False, slots=True)
class Acquired:
    """Records were acquired."""

    lease: Lease

    # Explicit, as in `share_messages`.
    def __init__(self, lease: Lease) -> None:
        self.lease = lease


class LeaderMoved(NamedTuple):
    """A partition has another leader; `leader_id` is -1 if it is not known."""

    share_partition: SharePartition
    leader: PartitionLeader


class EndpointsLearned(NamedTuple):
    endpoints: dict[int, Endpoint]


class FetchRecovered(NamedTuple):
    """A partition with a `PartitionError` is fetched again."""

    share_partition: SharePartition


class MetadataStale(NamedTuple):
    """A request based on the metadata has failed.

    Attributes:
        is_logged: other lines log why: the broker's outage, or errors of partitions.
    """

    reason: str
    is_logged: bool = False


class LocksLost(NamedTuple):
    """The session ended, and all locks acquired in it."""

    reason: str
    leases: tuple[Lease, ...]


def lost_ranges(lost: LocksLost) -> list[OffsetRange]:
    """Return the offsets whose locks were lost."""
    return [
        OffsetRange(lease.topic, lease.share_partition.partition, first, last)
        for lease in lost.leases
        for first, last, _ in lease.unsettled_runs()
    ]


def lost_count(lost: LocksLost) -> int:
    """Return the number of records whose locks were lost."""
    return count_offsets(lost_ranges(lost))


class PartitionError(NamedTuple):
    """A partition's error, to raise once."""

    share_partition: SharePartition
    code: int
    message: str | None


class FatalError(NamedTuple):
    """An error that ends the consumer."""

    error: Error


class Throttled(NamedTuple):
    """A node throttles every response, so none has records."""

    node_id: int


class Stalled(NamedTuple):
    """A node keeps returning empty responses early: see `EmptyResponses`."""

    node_id: int


class StartsFixed(NamedTuple):
    """The group's start offsets in all partitions of a node are fixed."""

    node_id: int


class UnexpectedResponse(NamedTuple):
    """A response violates the protocol; logged as a warning."""

    description: str


LeaderEvent = (
    Acquired
    | AcksAccepted
    | AcksRejected
    | EndpointsLearned
    | FetchAccepted
    | FetchRecovered
    | FetchRejected
    | LeaderMoved
    | LocksLost
    | MetadataStale
    | FatalError
    | Stalled
    | StartsFixed
    | UnexpectedResponse
    | Throttled
    | PartitionError
    | PartitionFetched
    | PartitionRetried
)
