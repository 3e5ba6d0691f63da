"""What a ShareFetch response brings: leases, errors of partitions, and measurements.

Rule: this file decides nothing about the next request; `pace`, `arrivals`, `waits` and
`requests` learn from the response what they need for that.
"""

from collections.abc import Mapping
from typing import final

from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.fetch.arrivals import Arrivals
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
from sharecons.protocol.fetch.pauses import FetchPauses
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.request_builder import RequestBuilder, Sent
from sharecons.protocol.fetch.session_manager import ShareSession
from sharecons.protocol.fetch.waits import Waits
from sharecons.protocol.messages import (
    FetchedPartition,
    ShareFetch,
    ShareFetched,
    SharePartition,
    TopicId,
)

__all__ = ["ResponseHandler"]


@final
class ResponseHandler:
    """Takes the responses of one leader."""

    def __init__(
        self,
        node_id: int,
        session: ShareSession,
        pace: Prefetch,
        acknowledgements: AckBatcher,
        arrivals: Arrivals,
        requests: RequestBuilder,
        waits: Waits,
        empties: EmptyResponses,
        pauses: FetchPauses,
    ) -> None:
        self._node_id = node_id
        self._session = session
        self._pace = pace
        self._acknowledgements = acknowledgements
        self._arrivals = arrivals
        self._requests = requests
        self._waits = waits
        self._empties = empties
        self._pauses = pauses

    def handle(
        self,
        sent: Sent,
        request: ShareFetch,
        answer: ShareFetched,
        now: float,
        topics: Mapping[TopicId, str],
        happened: list[LeaderEvent],
    ) -> bool:
        """Append leases and errors to `happened`; return whether more may lie ready.

        Args:
            sent, request, answer: the exchange.
            now: the time of the response.
            topics: names of topics by id.
        """
        # What an outlived session brings is locked for us all the same.
        outlived = sent.resets != self._session.resets
        known = sent.partitions if outlived else self._session.partitions
        seen: set[SharePartition] = set()
        got = size = 0
        failed = False
        for partition in answer.partitions:
            share_partition = partition.share_partition
            asked = share_partition in known or (
                share_partition in request.acknowledgements
            )
            if share_partition in seen or not asked:
                what = f"node {self._node_id} answered for {share_partition}, unasked"
                happened.append(UnexpectedResponse(what))
                continue
            seen.add(share_partition)
            if partition.error:
                failed = True
                self._pauses.failed(share_partition, partition.error, now)
                happened += fetch_error_event(partition)
            if partition.acquired:
                lease = self._lease(partition, sent.at, topics)
                happened.append(Acquired(lease))
                got += lease.count
                size += len(partition.records)
        recovered = self._pauses.take_recovered(known, answer.partitions)
        happened += map(FetchRecovered, recovered)
        if got:
            self._pace.measured(answer.partitions, self._waits.lock_timeout)
            self._empties.reset()
        elif sent.is_plain and not (outlived or answer.throttle or failed):
            if not request.acknowledgements:
                self._empties.received(request, sent.at, now)
            if self._empties.is_stalled:
                happened.append(Stalled(self._node_id))
        if self._requests.is_throttled(request, got, size, answer.throttle, now):
            happened.append(Throttled(self._node_id))
        self._arrivals.came(got, size, now, keeps_up=self._pace.keeps_up)
        self._waits.ended(fruitful=got > 0 or bool(request.acknowledgements))
        return self._requests.left_some(got, request)

    def _lease(
        self, partition: FetchedPartition, at: float, topics: Mapping[TopicId, str]
    ) -> Lease:
        lease = Lease(
            topic=topics.get(partition.share_partition.topic_id, "?"),
            share_partition=partition.share_partition,
            acquired=partition.acquired,
            payload=partition.records,
            deadline=at + self._waits.lock_timeout,
            lock_duration=self._waits.lock_timeout,
            term=self._session.term,
            owner=self._acknowledgements,
        )
        self._acknowledgements.acquired(lease)
        self._acknowledgements.redeliveries.acquired(partition.share_partition)
        self._pace.acquired(lease.count)
        return lease
