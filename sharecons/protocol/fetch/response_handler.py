"""Handling fetch responses: leases, and events for errors."""

from collections.abc import Mapping
from typing import final

from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.protocol.fetch.error_events import fetch_error_event, is_retried
from sharecons.protocol.fetch.events import (
    Acquired,
    FetchRecovered,
    LeaderEvent,
    Stalled,
    Throttled,
    UnexpectedResponse,
)
from sharecons.protocol.fetch.fetch_control import FetchControl
from sharecons.protocol.fetch.fetch_pauses import FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.retried_errors import RejectedAcks
from sharecons.protocol.fetch.session_manager import ShareSession
from sharecons.protocol.partitions import SharePartition, TopicId
from sharecons.protocol.share_messages import (
    PartitionResponse,
    ShareFetch,
    ShareFetchResponse,
)

__all__ = ["ResponseHandler"]


@final
class ResponseHandler:
    """Handles the fetch responses of one leader: makes leases, and events for errors.

    `fetch_control` learns from each response when and how much to fetch next.

    Attributes:
        acks: the partitions whose acknowledgements the leader rejects.
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
        self.acks = RejectedAcks()
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
            # The session has no partition from which nothing is fetched, but its
            # acknowledgements have a response.
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
                lease = self._add_lease(partition, sent_at, now, topic_names)
                events.append(Acquired(lease))
                record_count += lease.count
                byte_count += len(partition.records)
        pauses = self._pauses
        if pauses.codes:
            recovered = pauses.take_recovered(session_partitions, response.partitions)
            events += map(FetchRecovered, recovered)
        if pauses.retried.failed:
            events += pauses.retried.take_fetched(
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
        now: float,
        topic_names: Mapping[TopicId, str],
    ) -> Lease:
        lease = Lease(
            topic=topic_names.get(partition.share_partition.topic_id, "?"),
            share_partition=partition.share_partition,
            acquired=partition.acquired,
            payload=partition.records,
            locks=LockTimes(sent_at, now, self._control.lock_timeout),
            lock_scope=self._session.lock_scope,
            owner=self._batcher,
        )
        self._batcher.add_lease(lease)
        self._batcher.redeliveries.on_acquired(partition.share_partition)
        self._prefetch.on_acquired(lease.count)
        return lease
