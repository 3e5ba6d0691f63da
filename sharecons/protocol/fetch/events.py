"""What a leader's answers bring for others than the leader itself.

Rule 1: a machine that has something to tell beyond its next request, tells it
with one of these.
Rule 2: these are told once, in order; whoever takes them does what they ask.
"""

from dataclasses import dataclass
from typing import NamedTuple

from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    Error,
    UnsupportedVersionError,
)
from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.messages import (
    Endpoint,
    PartitionLeader,
    PartitionResponse,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
    SharePartition,
)

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
    "Throttled",
    "UnexpectedResponse",
    "ack_error_event",
    "fatal_error",
    "fetch_error_event",
]


@dataclass(init=False, slots=True)
class Acquired:
    """Records came."""

    lease: Lease

    # Written out, as those of `values` are.
    def __init__(self, lease: Lease) -> None:
        self.lease = lease


class LeaderMoved(NamedTuple):
    """Somebody else leads a partition; -1 where the broker does not know who."""

    share_partition: SharePartition
    leader: PartitionLeader


class EndpointsLearned(NamedTuple):
    endpoints: dict[int, Endpoint]


class FetchRecovered(NamedTuple):
    """A partition is fetched again that was `Troubled`."""

    share_partition: SharePartition


class MetadataStale(NamedTuple):
    reason: str


class LocksLost(NamedTuple):
    """The session ended, and the locks of all that it had acquired."""

    reason: str
    leases: tuple[Lease, ...]


class PartitionError(NamedTuple):
    """An error to raise once; `share_partition` is whose it is."""

    share_partition: SharePartition
    code: int
    message: str | None


class FatalError(NamedTuple):
    """An error that ends the consumer."""

    error: Error


class Throttled(NamedTuple):
    """Every response of a node is throttled, and so has no records."""

    node_id: int


class Stalled(NamedTuple):
    """A node goes on returning empty responses at once: see `EmptyResponses`."""

    node_id: int


class UnexpectedResponse(NamedTuple):
    """The broker said something that it should not; worth a warning."""

    description: str


LeaderEvent = (
    Acquired
    | EndpointsLearned
    | FetchRecovered
    | LeaderMoved
    | LocksLost
    | MetadataStale
    | FatalError
    | Stalled
    | UnexpectedResponse
    | Throttled
    | PartitionError
)


def fetch_error_event(partition: PartitionResponse) -> list[LeaderEvent]:
    """Say what the error of one partition's fetch means for others, if anything."""
    share_partition = partition.share_partition
    match action_for(error_actions.FETCH_PARTITION, partition.error):
        case ErrorAction.FIND_LEADER:
            return [LeaderMoved(share_partition, partition.leader)]
        case ErrorAction.REFRESH_METADATA:
            return [MetadataStale(code_name(partition.error))]
        case ErrorAction.REPORT:
            return [PartitionError(share_partition, partition.error, partition.message)]
        case _:
            return []  # none, or one to be silent of: the next fetch asks again


def ack_error_event(partition: PartitionResponse) -> list[LeaderEvent]:
    """Say what the error of one partition's acknowledgements means for others."""
    moved = (Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH)
    if partition.acknowledge_error in moved and not partition.error:
        return [LeaderMoved(partition.share_partition, partition.leader)]
    return []


def fatal_error(
    group_id: str, node_id: int, response: ShareFetchResponse | ShareAcknowledgeResponse
) -> FatalError:
    """Say that a leader will not serve this member at all."""
    name = code_name(response.error)
    said = f"{name} ({response.message})" if response.message else name
    text = (
        f"share group {group_id!r}: node {node_id} refuses to serve this member: {said}"
    )
    if response.error == Code.UNSUPPORTED_VERSION:
        return FatalError(UnsupportedVersionError(text))
    if response.error == Code.GROUP_AUTHORIZATION_FAILED:
        text += "; the principal needs READ on the group"
        return FatalError(AuthorizationError(text, code=response.error, name=name))
    return FatalError(BrokerError(text, code=response.error, name=name))
