"""The events of a leader's state machine, in the order of its responses."""

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
    """Records were acquired."""

    lease: Lease

    # Explicit, as in `messages`.
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
    reason: str


class LocksLost(NamedTuple):
    """The session ended, and all locks acquired in it."""

    reason: str
    leases: tuple[Lease, ...]


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


class UnexpectedResponse(NamedTuple):
    """A response violates the protocol; logged as a warning."""

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
    """Return the events for the error of one partition's fetch."""
    share_partition = partition.share_partition
    match action_for(error_actions.FETCH_PARTITION, partition.error):
        case ErrorAction.FIND_LEADER:
            return [LeaderMoved(share_partition, partition.leader)]
        case ErrorAction.REFRESH_METADATA:
            return [MetadataStale(code_name(partition.error))]
        case ErrorAction.REPORT:
            return [PartitionError(share_partition, partition.error, partition.message)]
        case _:
            return []  # no error, or one that the next fetch retries


def ack_error_event(partition: PartitionResponse) -> list[LeaderEvent]:
    """Return the events for the error of one partition's acknowledgements."""
    moved = (Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH)
    if partition.acknowledge_error in moved and not partition.error:
        return [LeaderMoved(partition.share_partition, partition.leader)]
    return []


def fatal_error(
    group_id: str, node_id: int, response: ShareFetchResponse | ShareAcknowledgeResponse
) -> FatalError:
    """Return the event for an error with which a leader rejects this member."""
    name = code_name(response.error)
    error = f"{name} ({response.message})" if response.message else name
    text = f"share group {group_id!r}: node {node_id} rejects this member: {error}"
    if response.error == Code.UNSUPPORTED_VERSION:
        return FatalError(UnsupportedVersionError(text))
    if response.error == Code.GROUP_AUTHORIZATION_FAILED:
        text += "; the principal needs READ on the group"
        return FatalError(AuthorizationError(text, code=response.error, name=name))
    return FatalError(BrokerError(text, code=response.error, name=name))
