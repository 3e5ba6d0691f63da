"""A leader between a broker and an application that both misbehave.

The driver works like `sharecons.member.drive`: it requests the next request after a
notification and at the leader's deadline, and at no other time.
"""

import math
from typing import Final

import pytest
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sharecons.errors import ClosedError, ConnectionFailedError
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import (
    Acquired,
    FatalError,
    LocksLost,
    UnexpectedResponse,
)
from sharecons.protocol.fetch.leader import Leader, Request
from sharecons.protocol.fetch.partition_rotation import PART_SIZE
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.fetch.start_offsets import KEEP_ALIVE
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import Range, ShareFetch
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW, AcknowledgeType
from tests.protocol.hypothesis_profile import MACHINE, search
from tests.protocol.message_factories import NODE_ID, SETTINGS, TOPIC, TOPIC_ID
from tests.protocol.simulated_application import Application, HeldLease
from tests.protocol.simulated_broker import LOCK, Broker, Fault, Response

LOST: Final = ConnectionFailedError("the connection broke")
ROUND_TRIP: Final = 0.001
FETCHES_UNTIL_FAST: Final = 24
"""Fetches until the leader recognizes that records arrive fast."""
FEW: Final = 3
"""Partitions that are assigned individually; the others are assigned together."""
PARTITIONS: Final = tuple(
    SharePartition(TOPIC_ID, n) for n in range(FEW + 2 * PART_SIZE)
)

FAULTS: Final = {
    "good": Fault(),
    "unknown": Fault(error=Code.UNKNOWN_SERVER_ERROR),
    "unknown, counted": Fault(error=Code.UNKNOWN_SERVER_ERROR, counted=True),
    "too many sessions": Fault(error=Code.SHARE_SESSION_LIMIT_REACHED),
    "wrong epoch": Fault(error=Code.INVALID_SHARE_SESSION_EPOCH),
    "no session": Fault(error=Code.SHARE_SESSION_NOT_FOUND),
    "not leader": Fault(fetch_error=Code.NOT_LEADER_OR_FOLLOWER),
    "storage": Fault(fetch_error=Code.KAFKA_STORAGE_ERROR),
    "timed out": Fault(acknowledge_error=Code.REQUEST_TIMED_OUT),
    "coordinator": Fault(acknowledge_error=Code.COORDINATOR_NOT_AVAILABLE),
    "fenced state": Fault(acknowledge_error=Code.FENCED_STATE_EPOCH),
    "lock moved": Fault(acknowledge_error=Code.NOT_LEADER_OR_FOLLOWER),
    "record state": Fault(acknowledge_error=Code.INVALID_RECORD_STATE),
    "left out": Fault(missing_in_response=True),
    "stranger": Fault(extra_partition=True),
}
RETRIED: Final = (Code.REQUEST_TIMED_OUT, Code.COORDINATOR_NOT_AVAILABLE)
NOT_APPLIED: Final = (Code.INVALID_SHARE_SESSION_EPOCH,)

GOOD: Final = "good"

partitions = st.integers(0, FEW - 1)
kinds = st.sampled_from([ACCEPT, ACCEPT, RELEASE, REJECT, RENEW])
numbers = st.integers(0, 50)
rarely = st.sampled_from([False, False, True])
faults = st.sampled_from([*FAULTS])
request_faults = st.one_of(st.just(GOOD), st.just(GOOD), faults)
seconds = st.sampled_from([0.002, 0.05, 0.6, 3.0, LOCK - 0.5, LOCK + 1.0])


class LeaderAndBroker(RuleBasedStateMachine):
    """A leader, its driver, its broker and the application."""

    @initialize(
        max_records=st.sampled_from([40, 500]),
        allowance=st.sampled_from([1, 3, 10, 500]),
        assigned=st.frozensets(partitions, min_size=1),
        many=rarely,
        kind=st.none() | kinds,
        ending=st.lists(st.tuples(st.none() | kinds, request_faults), max_size=4),
    )
    def begin(
        self,
        max_records: int,
        allowance: int,
        assigned: frozenset[int],
        many: bool,
        kind: AcknowledgeType | None,
        ending: list[tuple[AcknowledgeType | None, str]],
    ) -> None:
        self.now = 0.0
        self.ending = ending
        self.broker = Broker(PARTITIONS)
        self.application = Application(self.broker)
        self.prefetch = Prefetch(max_records)
        self.prefetch.allowance = min(allowance, max_records)
        self.result_log = ResultLog(lambda: None, lambda: 0.0)
        self.acknowledgements = AckBatcher(self.wake, self.result_log)
        self.leader = Leader(NODE_ID, SETTINGS, self.prefetch, self.acknowledgements)
        self.leader.topic_names = {TOPIC_ID: TOPIC}
        self.ready: list[Lease] = []
        self.in_flight: list[Request] = []
        self.response: Response | None = None  # the broker's, to the first request
        self.arrives_at = 0.0
        self.locks_lost_in_flight = False  # the response has records without locks
        self.fault = FAULTS[GOOD]
        self.is_woken = True
        self.sleeps_until = math.inf
        self.requests = 0
        self.set_partitions(assigned, many)
        for partition in assigned:
            self.produce(partition, 10)
        self.fetch(kind)

    @property
    def request(self) -> Request | None:
        return self.in_flight[0] if self.in_flight else None

    # The driver.

    def wake(self) -> None:
        self.is_woken = True

    def drive(self) -> None:
        """Work as the driver does, until it sleeps or waits for a response."""
        for _ in range(5):
            if self.request is not None or self.leader.finished:
                return
            if not self.is_woken and self.now < self.sleeps_until:
                return
            self.is_woken = False
            due = self.leader.next_deadline(self.now)
            request = self.leader.next_request(self.now)
            self.dispatch_events()
            if request is None:
                self.sleeps_until = self.leader.next_deadline(self.now)
                if not self.is_woken and not self.leader.finished:
                    assert self.sleeps_until > self.now, "the driver would spin"
            else:
                assert due <= self.now, "a request before its deadline"
                self.on_sent(request)
        raise AssertionError("the driver spins")

    def on_sent(self, request: Request) -> None:
        self.in_flight.append(request)
        self.requests += 1
        self.application.on_sent(request.acknowledgements)

    def dispatch_events(self) -> None:
        events, self.leader.events = self.leader.events, []
        for leader_event in events:
            assert not isinstance(leader_event, FatalError)
            if isinstance(leader_event, UnexpectedResponse):
                assert self.fault.extra_partition
            if isinstance(leader_event, Acquired):
                self.ready.append(leader_event.lease)
                if self.locks_lost_in_flight:
                    self.application.packed_without_locks.append(leader_event.lease)
            if isinstance(leader_event, LocksLost):
                for lease in [x for x in self.ready if x in leader_event.leases]:
                    self.ready.remove(lease)
                    self.prefetch.on_dropped(lease.count)
        self.dispatch_results()

    def dispatch_results(self) -> None:
        results, self.result_log.results = self.result_log.results, []
        self.application.on_results(results, self.now)

    # The broker, and the way to it.

    @rule(partition=partitions, count=st.integers(1, 12))
    def produce(self, partition: int, count: int) -> None:
        self.broker.partitions[PARTITIONS[partition]].produce(count)

    @precondition(lambda self: len(self.leader.partitions) > FEW)
    @rule(count=st.integers(1, 12))
    def produce_everywhere(self, count: int) -> None:
        for partition in self.broker.partitions.values():
            partition.produce(count)

    @rule(request_faults=st.lists(request_faults, min_size=1, max_size=6))
    def deliver_requests(self, request_faults: list[str]) -> None:
        for fault in request_faults:
            self.drive()
            if self.request is None and self.sleeps_until < self.now + 1.0:
                self.now = max(self.now, self.sleeps_until)
                self.drive()
            self.exchange(fault)

    @precondition(lambda self: self.request is not None and self.response is None)
    @rule(fault=request_faults)
    def handle(self, fault: str) -> None:
        assert self.request is not None
        self.fault = FAULTS[fault]
        self.response = self.broker.handle(self.request, self.now, self.fault)
        if PART_SIZE <= len(self.broker.session) < 2 * PART_SIZE:
            event("some of many partitions")
        wait = 0.0
        if isinstance(self.request, ShareFetch):
            wait = self.request.max_wait
            parts = self.response.partitions
            size = sum(len(p.records) for p in parts)
            failed = self.response.error or any(p.error for p in parts)
            if failed or size >= self.request.min_bytes:
                wait = 0.0
            elif size:
                event("fewer bytes than min_bytes")
        self.arrives_at = self.now + ROUND_TRIP + wait

    @precondition(lambda self: self.response is not None)
    @rule()
    def deliver_response(self) -> None:
        request, response, self.response = self.in_flight.pop(0), self.response, None
        assert response is not None
        self.now = max(self.now, self.arrives_at)
        self.note_outcome(request, response)
        self.leader.on_response(request, response, self.now)
        self.dispatch_events()
        self.locks_lost_in_flight = False
        self.is_woken = True

    def note_outcome(self, request: Request, response: Response) -> None:
        """Report the outcome of the request's acknowledgements to the application."""
        sent = request.acknowledgements
        if response.error:
            if response.error not in NOT_APPLIED:
                self.application.on_outcome(sent, may_fail=True)
            return
        codes = {p.share_partition: p.acknowledge_error for p in response.partitions}
        for partition, ranges in sent.items():
            code = codes.get(partition)
            if code in RETRIED or (code == Code.INVALID_RECORD_STATE):
                injected = code == self.fault.acknowledge_error
                closed = request.share_session_epoch == -1
                if injected and (closed or code == Code.INVALID_RECORD_STATE):
                    self.allow_failures_of(partition, ranges)
                continue
            self.application.on_outcome(
                {partition: ranges}, may_fail=bool(code) or code is None
            )

    def allow_failures_of(
        self, partition: SharePartition, ranges: tuple[Range, ...]
    ) -> None:
        finished = self.application.finished.copy()
        self.application.on_outcome({partition: ranges}, may_fail=True)
        self.application.finished = finished

    @precondition(lambda self: self.request is not None)
    @rule()
    def break_connection(self) -> None:
        request, in_flight = self.in_flight[0], list(self.in_flight)
        self.in_flight.clear()
        self.response, self.locks_lost_in_flight = None, False
        self.broker.disconnected()
        for each in in_flight:
            self.application.on_outcome(each.acknowledgements, may_fail=True)
        self.leader.on_error(request, LOST, self.now)
        self.dispatch_events()
        self.is_woken = True

    @rule()
    def forget_session(self) -> None:
        self.broker.forget_session()
        self.application.allow_failures(self.ready)
        self.locks_lost_in_flight = self.response is not None

    @rule()
    def miscount(self) -> None:
        self.broker.miscount()

    def exchange(self, fault: str = GOOD) -> None:
        if self.request is not None:
            if self.response is None:
                self.handle(fault)
            self.deliver_response()

    @rule(seconds=seconds)
    def time_passes(self, seconds: float) -> None:
        """Advance the time until the driver wakes or the response arrives."""
        end = self.now + seconds
        if self.response is not None:
            end = min(end, max(self.now, self.arrives_at))
        elif self.request is None:
            end = min(end, max(self.now, self.sleeps_until))
        self.now = end

    # The shell and the application.

    @rule(assigned=st.frozensets(partitions), many=rarely)
    def set_partitions(self, assigned: frozenset[int], many: bool) -> None:
        several = frozenset(PARTITIONS[number] for number in assigned)
        self.leader.set_partitions(several.union(PARTITIONS[FEW:] if many else ()))
        self.wake()

    @rule(kind=st.none() | kinds)
    def fetch(self, kind: AcknowledgeType | None) -> None:
        """Process the ready records, or wait for more."""
        if self.ready:
            self.process(all_of_it=True, kind=kind)
            return
        self.prefetch.on_requested(self.now)
        self.prefetch.waiting_readers = 1
        for _ in range(3):
            self.wake()
            self.drive()
            self.exchange()
            if self.ready:
                self.process(all_of_it=True, kind=kind)
                return

    @rule(
        partition=partitions,
        kind=st.sampled_from([ACCEPT, RELEASE]),
        request_faults=st.lists(request_faults, min_size=6, max_size=16),
    )
    def receive_single_records(
        self, partition: int, kind: AcknowledgeType, request_faults: list[str]
    ) -> None:
        """Records arrive one by one and are processed in no time."""
        for fault in request_faults:
            self.produce(partition, 1)
            if self.ready:
                self.process(all_of_it=True, kind=kind)
            self.application_requests()
            self.drive()
            self.exchange(fault)

    @rule(
        kind=st.sampled_from([ACCEPT, RELEASE]),
        request_faults=st.lists(request_faults, min_size=6, max_size=16),
    )
    def receive_many_records(
        self, kind: AcknowledgeType, request_faults: list[str]
    ) -> None:
        """Many records are available and are processed in no time."""
        for fault in request_faults:
            for partition in range(FEW):
                self.produce(partition, 12)
            if self.ready:
                self.process(all_of_it=True, kind=kind)
            self.application_requests()
            self.drive()
            self.exchange(fault)

    @rule(
        partition=partitions,
        kind=st.sampled_from([ACCEPT, RELEASE]),
        request_faults=st.lists(request_faults, min_size=1, max_size=6),
    )
    def receive_fast_records(
        self, partition: int, kind: AcknowledgeType, request_faults: list[str]
    ) -> None:
        """Each fetch waits for many records, which are processed in no time."""
        for fault in [GOOD] * FETCHES_UNTIL_FAST + request_faults:
            self.produce(partition, 20)
            if self.ready:
                self.process(all_of_it=True, kind=kind)
            self.application_requests()
            self.drive()
            self.exchange(fault)

    @rule()
    def application_requests(self) -> None:
        if not self.ready:
            self.prefetch.on_requested(self.now)
            self.prefetch.waiting_readers = 1
            self.wake()

    @rule()
    def application_is_busy(self) -> None:
        self.prefetch.waiting_readers = 0

    @precondition(lambda self: self.ready)
    @rule(all_of_it=st.booleans(), kind=st.none() | kinds)
    def process(self, all_of_it: bool, kind: AcknowledgeType | None) -> None:
        self.prefetch.waiting_readers = 0
        for lease in list(self.ready) if all_of_it else self.ready[:1]:
            self.ready.remove(lease)
            if lease.lock_scope.ended or self.now >= lease.locks.deadline:
                self.prefetch.on_dropped(lease.count)
                continue
            self.application.unpack(lease)
            self.prefetch.on_delivered(lease.count, self.now)
            self.wake()
            if kind is not None:
                held = self.application.held[-1]
                self.application.acknowledge_range(held, 0, len(held.offsets), kind)

    @precondition(lambda self: self.ready)
    @rule()
    def drop_ready(self) -> None:
        lease = self.ready.pop()
        self.prefetch.on_dropped(lease.count)
        if not lease.lock_scope.ended:
            self.application.release_packed(lease)

    def pick(self, which: int) -> HeldLease | None:
        """Return one of the three latest leases with records."""
        held = [held for held in self.application.held if held.offsets]
        return held[-1 - which % min(len(held), 3)] if held else None

    @rule(
        which=numbers,
        acks=st.lists(st.tuples(numbers, kinds), min_size=1),
        commit=st.booleans(),
        after=st.none() | seconds,
    )
    def acknowledge(
        self,
        which: int,
        acks: list[tuple[int, AcknowledgeType]],
        commit: bool,
        after: float | None,
    ) -> None:
        held = self.pick(which)
        if held is not None:
            if after is not None:
                self.time_passes(after)
            for index, kind in acks:
                self.application.acknowledge(held, index % len(held.offsets), kind)
            if commit:
                self.commit()
            self.dispatch_results()

    @rule(which=numbers, start=numbers, length=st.integers(0, 12), kind=kinds)
    def acknowledge_range(
        self, which: int, start: int, length: int, kind: AcknowledgeType
    ) -> None:
        held = self.pick(which)
        if held is not None:
            start %= len(held.offsets)
            stop = min(start + length, len(held.offsets))
            self.application.acknowledge_range(held, start, stop, kind)
            self.dispatch_results()

    @rule(which=numbers, cursor=numbers)
    def release_remaining(self, which: int, cursor: int) -> None:
        held = self.pick(which)
        if held is not None and not held.lease.lock_scope.ended:
            held.lease.cursor = cursor % len(held.offsets)
            self.application.release_remaining(held)

    @rule()
    def commit(self) -> None:
        waiter = CommitWaiter()
        self.application.waiters.append(waiter)
        self.acknowledgements.collect(waiter)
        self.leader.flush_acks()
        self.wake()

    @precondition(lambda self: len(self.application.held) > 6)
    @rule()
    def close(self) -> None:
        self.leader.close()
        self.wake()

    # Invariants.

    @invariant()
    def driver_makes_progress(self) -> None:
        if hasattr(self, "leader"):
            self.drive()

    @invariant()
    def buffered_count_matches_ready_leases(self) -> None:
        if hasattr(self, "leader"):
            assert sum(lease.count for lease in self.ready) == self.prefetch.buffered

    @precondition(lambda self: not self.leader.finished)
    @rule(fault=faults, broken=st.booleans())
    def errors_repeat(self, fault: str, broken: bool) -> None:
        """A repeated error does not cause a storm of requests."""
        self.prefetch.waiting_readers = int(not self.ready)
        self.wake()
        self.drive()
        before, end = self.requests, self.now + 5.0
        for _ in range(1_000):
            self.drive()
            if self.leader.finished or self.now >= end:
                break
            if self.request is not None and broken:
                self.break_connection()
            elif self.request is not None:
                self.exchange(fault)
            else:
                self.now = min(end, self.sleeps_until)
        assert self.requests - before < 150

    @rule()
    def run_without_faults(self) -> None:
        """Each acknowledgement gets its result, and then the leader is idle."""
        self.prefetch.waiting_readers = 0
        for _ in range(400):
            self.drive()
            if self.request is not None:
                self.exchange()
            elif self.sleeps_until >= self.now + KEEP_ALIVE or self.leader.finished:
                break
            else:
                self.now = max(self.now, self.sleeps_until)
        else:
            raise AssertionError("the leader never comes to rest")
        self.dispatch_events()
        assert not self.acknowledgements.has_pending
        self.application.check_all_settled()
        self.application.check_renewals()

    def teardown(self) -> None:
        if hasattr(self, "leader"):
            self.finish_processing()
            self.run_without_faults()
            assert self.leader.finished
            self.closed_leases_reject_acknowledgements()

    def finish_processing(self) -> None:
        for turn, (kind, fault) in enumerate(self.ending):
            if turn == len(self.ending) // 2:
                self.close()
            if kind is not None and self.application.held:
                held = self.application.held[-1 - turn % len(self.application.held)]
                self.application.acknowledge_range(held, 0, len(held.offsets), kind)
            self.deliver_requests([fault])
        self.close()

    def closed_leases_reject_acknowledgements(self) -> None:
        self.result_log.closed = True
        for held in self.application.held:
            for offset in held.offsets:
                with pytest.raises(ClosedError):
                    held.lease.acknowledge(offset, ACCEPT)


LeaderAndBroker.TestCase.settings = MACHINE
TestLeaderAndBroker = search(LeaderAndBroker.TestCase)
