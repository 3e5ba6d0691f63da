"""The events of a leader: leases from its responses, errors, and others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    Error,
    UnsupportedVersionError,
)
from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.fetch.fetch_control import FetchControl
from sharecons.protocol.fetch.pauses import FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.retried_errors import (
    FetchAccepted,
    FetchRejected,
    PartitionFetched,
    PartitionRetried,
)
from sharecons.protocol.fetch.session_manager import ShareSession
from sharecons.protocol.messages import (
    Endpoint,
    PartitionLeader,
    PartitionResponse,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
    SharePartition,
    TopicId,
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
    "ResponseHandler",
    "Stalled",
    "StartsFixed",
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
    """A request based on the metadata has failed; the broker's outage can be why."""

    reason: str
    is_outage: bool = False


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


class StartsFixed(NamedTuple):
    """The group's start offsets in all partitions of a node are fixed."""

    node_id: int


class UnexpectedResponse(NamedTuple):
    """A response violates the protocol; logged as a warning."""

    description: str


LeaderEvent = (
    Acquired
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


_RETRIED: Final = (ErrorAction.RETRY, ErrorAction.FIND_LEADER)


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


def is_retried(code: int) -> bool:
    """Return whether the error of a partition is retried with no other report."""
    return action_for(error_actions.FETCH_PARTITION, code) in _RETRIED


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


@final
class ResponseHandler:
    """Handles the fetch responses of one leader: makes leases, and events for errors.

    `fetch_control` learns from each response when and how much to fetch next.
    """

    def __init__(
        self,
        node_id: int,
        session: ShareSession,
        prefetch: Prefetch,
        batcher: AckBatcher,
        control: FetchControl,
        pauses: FetchPauses,
    ) -> None:
        self._node_id = node_id
        self._session = session
        self._prefetch = prefetch
        self._batcher = batcher
        self._control = control
        self._pauses = pauses

    def handle(
        self,
        request: ShareFetch,
        response: ShareFetchResponse,
        sent_at: float,
        now: float,
        topic_names: Mapping[TopicId, str],
        events: list[LeaderEvent],
    ) -> bool:
        """Append leases and errors to `events`; return whether there is a backlog.

        Args:
            request, response: the exchange.
            sent_at, now: the times of the request and the response.
            topic_names: topic names by id.
            events: the leader's events.
        """
        session_partitions = self._session.partitions
        seen: set[SharePartition] = set()
        record_count = byte_count = 0
        for partition in response.partitions:
            share_partition = partition.share_partition
            was_requested = share_partition in session_partitions or (
                share_partition in request.acknowledgements
            )
            if share_partition in seen or not was_requested:
                description = (
                    f"node {self._node_id} returned {share_partition}, which was not "
                    "requested"
                )
                events.append(UnexpectedResponse(description))
                continue
            seen.add(share_partition)
            if partition.error:
                self._pauses.on_error(share_partition, partition.error, now)
                events += fetch_error_event(partition)
                if is_retried(partition.error):
                    events.append(self._pauses.retried.on_error(partition))
            if partition.acquired:
                lease = self._add_lease(partition, sent_at, topic_names)
                events.append(Acquired(lease))
                record_count += lease.count
                byte_count += len(partition.records)
        recovered = self._pauses.take_recovered(session_partitions, response.partitions)
        events += map(FetchRecovered, recovered)
        events += self._pauses.retried.take_fetched(
            session_partitions, response.partitions
        )
        outcome = self._control.on_fetched(
            request, response, record_count, byte_count, sent_at, now
        )
        if outcome.is_stalled:
            events.append(Stalled(self._node_id))
        if outcome.is_throttled:
            events.append(Throttled(self._node_id))
        return outcome.has_backlog

    def _add_lease(
        self,
        partition: PartitionResponse,
        sent_at: float,
        topic_names: Mapping[TopicId, str],
    ) -> Lease:
        lock_timeout = self._control.lock_timeout
        lease = Lease(
            topic=topic_names.get(partition.share_partition.topic_id, "?"),
            share_partition=partition.share_partition,
            acquired=partition.acquired,
            payload=partition.records,
            deadline=sent_at + lock_timeout,
            lock_duration=lock_timeout,
            lock_scope=self._session.lock_scope,
            owner=self._batcher,
        )
        self._batcher.add_lease(lease)
        self._batcher.redeliveries.on_acquired(partition.share_partition)
        self._prefetch.on_acquired(lease.count)
        return lease
