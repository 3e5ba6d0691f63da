"""A harness for tests of the acknowledgement batcher."""

from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.protocol.acknowledge.result_log import AcknowledgeFailure, ResultLog
from sharecons.protocol.acknowledge.results import join_results
from sharecons.protocol.codes import Code
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import PartitionResponse
from sharecons.record import ACCEPT, AcknowledgeType
from tests.protocol.message_factories import (
    P0,
    TOPIC,
    acks_by_offset,
    partition_response,
)

__all__ = ["INVALID_STATE", "Acks", "BatcherHarness", "accepted", "lose_session"]

Acks = dict[int, int]
INVALID_STATE = Code.INVALID_RECORD_STATE


class BatcherHarness:
    """An acknowledgement batcher with its result log, and calls of its leader."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pending_notifications = 0
        self.result_notifications = 0
        self.result_log = ResultLog(self._on_result, lambda: self.now)
        self.batcher = AckBatcher(self._on_pending, self.result_log)
        self.lock_scope = LockScope()

    def _on_pending(self) -> None:
        self.pending_notifications += 1

    def _on_result(self) -> None:
        self.result_notifications += 1

    def add_lease(
        self,
        *offsets: int,
        at: SharePartition = P0,
        deadline: float = 30.0,
        delivery_count: int = 1,
        gaps: tuple[tuple[int, int], ...] = (),
    ) -> Lease:
        lease = Lease(
            topic=TOPIC,
            share_partition=at,
            acquired=((offsets[0], offsets[-1], delivery_count),),
            payload=b"",
            locks=LockTimes(deadline, deadline, 0.0),
            lock_scope=self.lock_scope,
            owner=self.batcher,
        )
        self.batcher.add_lease(lease)
        lease.set_offsets(offsets, gaps=gaps)
        return lease

    def take_acks(self, now: float = 0.0) -> dict[SharePartition, Acks]:
        return {
            p: acks_by_offset(ranges)
            for p, ranges in self.batcher.take_ranges(now).items()
        }

    def respond(
        self,
        *partitions: PartitionResponse,
        error: AcknowledgeFailure | None = None,
        renewed_until: float = 0.0,
        now: float = 0.0,
    ) -> None:
        self.batcher.on_response(
            partitions, error=error, renewed_until=renewed_until, now=now
        )

    def exchange(self, code: int = 0, now: float = 0.0) -> dict[SharePartition, Acks]:
        """Send the next request; the response has `code` for each partition."""
        sent = self.take_acks(now)
        self.respond(
            *(partition_response(p, acknowledge_error=code) for p in sent), now=now
        )
        return sent

    def commit(self) -> CommitWaiter:
        waiter = CommitWaiter()
        self.batcher.collect(waiter)
        return waiter

    @property
    def results(self) -> list[tuple[int, int, AcknowledgeType, str | None]]:
        """The results: offsets, type, and the error's name."""
        return [
            (r.first_offset, r.last_offset, r.type, r.error.name if r.error else None)
            for r in join_results(self.result_log.results)
        ]


def accepted(*offsets: int) -> Acks:
    return dict.fromkeys(offsets, ACCEPT)


def lose_session(harness: BatcherHarness) -> None:
    harness.lock_scope.ended = True
    harness.lock_scope.reason = "the connection was lost"
    harness.lock_scope.code = Code.NETWORK_EXCEPTION
    harness.batcher.on_session_lost(harness.lock_scope)
