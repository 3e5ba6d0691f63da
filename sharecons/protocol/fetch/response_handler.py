"""The handling of ShareFetch responses: leases, errors of partitions, measurements.

The next request is decided elsewhere: `prefetch`, `arrival_rate`, `max_wait` and
`request_builder` are updated from the response.
"""

from collections.abc import Mapping
from typing import final

from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.fetch.arrival_rate import ArrivalRate
from sharecons.protocol.fetch.empty_responses import EmptyResponses
from sharecons.protocol.fetch.events import (
    Acquired,
    FetchRecovered,
    LeaderEvent,
    Stalled,
    Throttled,
    UnexpectedResponse,
    fetch_error_event,
)
from sharecons.protocol.fetch.max_wait import MaxWait
from sharecons.protocol.fetch.pauses import FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.request_builder import RequestBuilder, SentRequest
from sharecons.protocol.fetch.session_manager import ShareSession
from sharecons.protocol.messages import (
    PartitionResponse,
    ShareFetch,
    ShareFetchResponse,
    SharePartition,
    TopicId,
)

__all__ = ["ResponseHandler"]


@final
class ResponseHandler:
    """Handles the responses of one leader."""

    def __init__(
        self,
        node_id: int,
        session: ShareSession,
        prefetch: Prefetch,
        batcher: AckBatcher,
        arrival_rate: ArrivalRate,
        request_builder: RequestBuilder,
        max_wait: MaxWait,
        empty_responses: EmptyResponses,
        pauses: FetchPauses,
    ) -> None:
        self._node_id = node_id
        self._session = session
        self._prefetch = prefetch
        self._batcher = batcher
        self._arrival_rate = arrival_rate
        self._request_builder = request_builder
        self._max_wait = max_wait
        self._empty_responses = empty_responses
        self._pauses = pauses

    def handle(
        self,
        sent: SentRequest,
        request: ShareFetch,
        response: ShareFetchResponse,
        now: float,
        topic_names: Mapping[TopicId, str],
        events: list[LeaderEvent],
    ) -> bool:
        """Append leases and errors to `events`; return whether there is a backlog.

        Args:
            sent, request, response: the exchange.
            now: the time of the response.
            topic_names: topic names by id.
            events: the leader's events.
        """
        # Records of an earlier session are locked for this member as well.
        is_old_session = sent.session_resets != self._session.resets
        session_partitions = (
            sent.partitions if is_old_session else self._session.partitions
        )
        seen: set[SharePartition] = set()
        record_count = byte_count = 0
        has_errors = False
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
                has_errors = True
                self._pauses.on_error(share_partition, partition.error, now)
                events += fetch_error_event(partition)
            if partition.acquired:
                lease = self._add_lease(partition, sent.sent_at, topic_names)
                events.append(Acquired(lease))
                record_count += lease.count
                byte_count += len(partition.records)
        recovered = self._pauses.take_recovered(session_partitions, response.partitions)
        events += map(FetchRecovered, recovered)
        if record_count:
            self._prefetch.measure(response.partitions, self._max_wait.lock_timeout)
            self._empty_responses.reset()
        elif sent.keeps_session and not (
            is_old_session or response.throttle or has_errors
        ):
            if not request.acknowledgements:
                self._empty_responses.on_empty_response(request, sent.sent_at, now)
            if self._empty_responses.is_stalled:
                events.append(Stalled(self._node_id))
        if self._request_builder.count_response(
            request, record_count, byte_count, response.throttle, now
        ):
            events.append(Throttled(self._node_id))
        self._arrival_rate.on_response(
            record_count, byte_count, now, keeps_up=self._prefetch.keeps_up
        )
        self._max_wait.on_response(
            useful=record_count > 0 or bool(request.acknowledgements)
        )
        return self._request_builder.found_backlog(record_count, request)

    def _add_lease(
        self,
        partition: PartitionResponse,
        sent_at: float,
        topic_names: Mapping[TopicId, str],
    ) -> Lease:
        lease = Lease(
            topic=topic_names.get(partition.share_partition.topic_id, "?"),
            share_partition=partition.share_partition,
            acquired=partition.acquired,
            payload=partition.records,
            deadline=sent_at + self._max_wait.lock_timeout,
            lock_duration=self._max_wait.lock_timeout,
            lock_scope=self._session.lock_scope,
            owner=self._batcher,
        )
        self._batcher.add_lease(lease)
        self._batcher.redeliveries.on_acquired(partition.share_partition)
        self._prefetch.on_acquired(lease.count)
        return lease
