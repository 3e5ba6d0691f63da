"""What a leader's answers bring for others than the leader itself.

Rule 1: a machine that has something to tell beyond its next request, tells it
with one of these.
Rule 2: these are told once, in order; whoever takes them does what they ask.
"""

from typing import NamedTuple

from sharecons.errors import Error
from sharecons.protocol.leases import Lease
from sharecons.protocol.values import Endpoint, PartitionLeader, SharePartition

__all__ = [
    "Acquired",
    "EndpointsTold",
    "Happened",
    "LeaderMoved",
    "LocksLost",
    "MetadataStale",
    "Refused",
    "Strange",
    "Troubled",
]


class Acquired(NamedTuple):
    """Records came."""

    lease: Lease


class LeaderMoved(NamedTuple):
    """Somebody else leads a partition; -1 where the broker does not know who."""

    share_partition: SharePartition
    leader: PartitionLeader


class EndpointsTold(NamedTuple):
    endpoints: dict[int, Endpoint]


class MetadataStale(NamedTuple):
    why: str


class LocksLost(NamedTuple):
    """The session ended, and the locks of all that it had acquired."""

    why: str
    leases: tuple[Lease, ...]


class Troubled(NamedTuple):
    """An error to raise once; `share_partition` is whose it is."""

    share_partition: SharePartition
    code: int
    message: str | None


class Refused(NamedTuple):
    """An error that ends the consumer."""

    error: Error


class Strange(NamedTuple):
    """The broker said something that it should not; worth a warning."""

    what: str


Happened = (
    Acquired
    | EndpointsTold
    | LeaderMoved
    | LocksLost
    | MetadataStale
    | Refused
    | Strange
    | Troubled
)
