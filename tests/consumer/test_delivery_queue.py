"""The queue of records for the application, without a broker."""

import asyncio
import gc
import logging
import weakref
from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from sharecons.consumer.delivery_queue import SLICE, DeliveryQueue
from sharecons.consumer.iterators import RecordIterator
from sharecons.consumer.polling import Poller
from sharecons.consumer.readers import Reader, Readers, Unacknowledged
from sharecons.consumer.receive import accept_passed_records
from sharecons.deserializers import Deserializers
from sharecons.errors import DeserializationError
from sharecons.member.group_configs import GroupConfigReader
from sharecons.member.lease_buffer import LeaseBuffer
from sharecons.metrics import MetricName
from sharecons.metrics.catalog import values_of
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.io.event_loop import AutoResetEvent, EventWaiter, Waiter
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.fetch.demand import FetchDemand
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.record import Record
from sharecons.records.encoder import NewRecord, encode
from sharecons.testing import virtual_time
from tests.net.waits import other_tasks_have_run
from tests.protocol.message_factories import P0
from tests.waiting import until

pytestmark = pytest.mark.anyio


NONE = Deserializers(None, None)


class Bench:
    """A DeliveryQueue and leases for it; the test moves the clock."""

    def __init__(
        self,
        *,
        implicit: bool = True,
        delivery_limit: int = 5,
        deserializers: Deserializers = NONE,
        new_waiter: Callable[[], Waiter] = EventWaiter,
    ) -> None:
        self.now = 100.0
        self.recorder = MetricsRecorder()
        self.term = LockScope()
        self.owner = AckBatcher(lambda: None, ResultLog(lambda: None, lambda: 0.0))
        self.buffer = LeaseBuffer(
            lambda: self.now,
            self.recorder,
            GroupConfigReader("billing", delivery_limit),
            log_fields={},
        )
        self.readers = Readers(lambda: None)
        self.deliveries = DeliveryQueue(
            self.buffer,
            self.readers,
            implicit=implicit,
            subscribed=True,
            new_waiter=new_waiter,
            deserializers=deserializers,
        )
        self.pace = Prefetch(500)
        demand = FetchDemand(self.pace, 500, lambda: None)
        self.buffer.attach(self.readers, demand)
        self.poller = Poller(self.deliveries)

    def acquire(self, first: int, count: int, delivery_count: int = 1) -> Lease:
        records = [NewRecord(value=b"%d" % (first + i)) for i in range(count)]
        lease = Lease(
            topic="orders",
            share_partition=P0,
            acquired=((first, first + count - 1, delivery_count),),
            payload=encode(records, base_offset=first),
            locks=LockTimes(self.now, self.now, 30.0),
            lock_scope=self.term,
            owner=self.owner,
        )
        self.owner.add_lease(lease)
        self.pace.on_acquired(count)
        self.buffer.on_acquired([lease])
        return lease

    async def poll(self, max_records: int | None = None) -> list[int]:
        records = await self.poller.poll(0.0, max_records)
        return [record.offset for record in records]

    def count(self, name: MetricName) -> float:
        return values_of(self.recorder)[name]


async def test_records_on_later_deliveries_are_delivered_first() -> None:
    bench = Bench()
    bench.acquire(0, 2)
    bench.acquire(10, 1, delivery_count=5)
    bench.acquire(20, 1)
    bench.acquire(30, 1, delivery_count=3)

    assert await bench.poll() == [10, 30, 0, 1, 20]


async def test_closing_reports_unprocessed_last_deliveries(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(delivery_limit=3)
    bench.acquire(0, 2, delivery_count=3)
    bench.acquire(10, 4)
    bench.acquire(20, 5, delivery_count=3)
    assert await bench.poll(1) == [0]
    with caplog.at_level(logging.WARNING, logger="sharecons"):
        bench.buffer.close()

    assert bench.count("sharecons-records-released-unprocessed-total") == 1 + 4 + 5
    assert bench.count("sharecons-last-deliveries-unprocessed-total") == 1 + 5
    assert "last delivery" in caplog.text


async def test_closing_reports_no_records_with_deliveries_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.acquire(0, 2, delivery_count=4)
    with caplog.at_level(logging.WARNING, logger="sharecons"):
        bench.buffer.close()
        bench.acquire(10, 3)  # was in flight

    assert bench.count("sharecons-records-released-unprocessed-total") == 5
    assert caplog.text == ""


async def test_record_whose_lock_has_ended_is_not_delivered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.acquire(0, 10)
    assert await bench.poll(4) == [0, 1, 2, 3]
    bench.acquire(20, 3)
    bench.now += 29
    bench.acquire(30, 1)
    assert await bench.poll(2) == [4, 5]
    bench.now += 1

    assert await bench.poll() == [30]
    assert bench.count("sharecons-lock-overruns-total") == 4 + 3
    reason = "processing took 30 s, the lock lasts 30 s: call renew() or raise"
    assert reason in caplog.text
    assert bench.pace.buffered == 0


async def test_records_of_a_lost_session_are_not_delivered() -> None:
    bench = Bench()
    lease = bench.acquire(0, 10)
    ready = bench.acquire(20, 5)
    assert await bench.poll(4) == [0, 1, 2, 3]
    bench.term.ended = True
    bench.buffer.on_locks_lost([lease, ready])

    assert await bench.poll() == []
    assert bench.pace.buffered == 0


async def test_unsubscribed_records_are_removed_from_prefetch() -> None:
    bench = Bench()
    bench.acquire(0, 3)
    bench.acquire(10, 4)
    assert await bench.poll(1) == [0]
    bench.buffer.keep_only(())

    assert await bench.poll() == []
    assert bench.pace.buffered == 0


async def test_explicit_mode_accepts_no_passed_records() -> None:
    bench = Bench(implicit=False)
    loop = RecordIterator[bytes, bytes](bench.deliveries, lambda: None)
    lease = bench.acquire(0, 3)
    for _ in range(2):
        await anext(loop)

    assert not bench.readers.accept_passed()
    assert lease.is_open(0)


@pytest.mark.slow("collects garbage")
async def test_released_records_leave_no_garbage() -> None:
    bench = Bench(deserializers=Deserializers(None, Job))
    gc.collect()
    gc.disable()
    try:
        for first in range(0, 100, 10):
            bench.acquire(first, 10)
            await bench.poll()
        alive = len(Job.made)
    finally:
        gc.enable()

    assert alive <= 10, "the last ones; the others were freed without a collector"


class RefusedError(Exception):
    made = weakref.WeakSet["RefusedError"]()


def refuse(text: bytes) -> None:
    error = RefusedError()
    RefusedError.made.add(error)
    try:
        raise error
    finally:
        del error


@pytest.mark.slow("collects garbage")
async def test_error_of_a_deserializer_leaves_no_garbage() -> None:
    bench = Bench(deserializers=Deserializers(None, refuse))
    bench.acquire(0, 3)
    gc.collect()
    gc.disable()
    try:
        try:
            await bench.poll()
        except DeserializationError:
            assert 1 == len(RefusedError.made)
        alive = len(RefusedError.made)
    finally:
        gc.enable()

    assert 0 == alive


class Job:
    """A deserialized value that refers to its record, as the record refers to it."""

    made = weakref.WeakSet["Job"]()

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.record: Record | None = None
        self.made.add(self)


@pytest.mark.slow("collects garbage")
async def test_value_that_refers_back_to_its_record_is_collected() -> None:
    bench = Bench(deserializers=Deserializers(None, Job))
    bench.acquire(0, 3)
    for record in await bench.poller.poll(0.0, None):
        assert isinstance(record, Record)
        record.value.record = record
    assert len(Job.made) == 3
    del record
    await bench.poll()
    gc.collect()

    assert not Job.made


async def test_next_record_as_a_task_cancelled_before_it_ran_loses_nothing() -> None:
    bench = Bench()
    loop = RecordIterator(bench.deliveries, lambda: None)
    lease = bench.acquire(0, 3)
    assert (await anext(loop)).offset == 0
    never_awaited = anext(loop)
    del never_awaited
    closed = loop.__anext__()
    closed.close()
    thrown = loop.__anext__()
    with pytest.raises(ValueError, match="thrown"):
        thrown.throw(ValueError("thrown"))

    assert lease.is_open(0)
    assert (await anext(loop)).offset == 1


async def test_next_record_can_be_a_task_of_its_own() -> None:
    bench = Bench()
    loop = RecordIterator(bench.deliveries, lambda: None)
    bench.acquire(0, 3)
    got: list[int] = []

    async def read() -> None:
        got.append((await anext(loop)).offset)

    async def read_by_steps() -> None:
        coroutine = loop.__anext__()
        with pytest.raises(StopIteration) as ended:
            coroutine.send(None)
        got.append(ended.value.value.offset)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_by_steps)

    assert got == [0, 1]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_next_record_works_with_asyncio_tasks() -> None:
    bench = Bench()
    loop = RecordIterator(bench.deliveries, lambda: None)
    waiting = asyncio.create_task(loop.__anext__())
    await checkpoint()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    bench.acquire(0, 3)
    first = await asyncio.create_task(loop.__anext__())
    second = await asyncio.wait_for(anext(loop), 10)

    assert [first.offset, second.offset] == [0, 1]


async def test_records_whose_locks_ended_unprocessed_do_not_count_as_processed() -> (
    None
):
    bench = Bench()
    bench.acquire(0, 100)
    assert [0] == await bench.poll(1)

    bench.now += 40.0  # for the first record: the locks of the others have ended
    assert [] == await bench.poll(1)
    bench.acquire(100, 1)
    bench.acquire(101, 1)
    assert [100] == await bench.poll(1)

    assert bench.pace.next_due(bench.now) == pytest.approx(bench.now + 80.0, abs=1)


async def test_processing_counts_the_records_of_other_readers() -> None:
    bench = Bench()
    readers = Readers(lambda: None)
    loop, poll = (
        Reader(Unacknowledged(implicit=True), EventWaiter(), per_record=per_record)
        for per_record in (True, False)
    )
    assert readers.processing(loop) == (0, 0)

    for reader, first, delivered in ((poll, 0, 3), (loop, 10, 2)):
        lease = bench.acquire(first, 5)
        lease.set_offsets(range(first, first + 5))
        readers.hold(reader, lease)
        lease.cursor = delivered

    # A loop that reads record by record has processed all but the last one.
    assert readers.processing(poll) == (1, 1)
    assert readers.processing(loop) == (1, 3)
    assert readers.processing(None) == (2, 4)
    readers.settle(loop, accept=True)
    assert readers.processing(poll) == (0, 0)


class CountingWaiter(EventWaiter):
    """Counts how often a reader that waits is woken."""

    wakes = 0

    def wake(self) -> None:
        type(self).wakes += 1
        super().wake()


async def test_one_record_wakes_one_of_the_loops_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CountingWaiter, "wakes", 0)
    bench = Bench(new_waiter=CountingWaiter)
    received: list[int] = []

    async def read_one() -> None:
        loop = RecordIterator[bytes, bytes](bench.deliveries, lambda: None)
        received.append((await anext(loop)).offset)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(read_one)
        while bench.pace.waiting_readers < 3:
            await checkpoint()
        bench.acquire(0, 1)
        await other_tasks_have_run()

        assert [0] == received
        assert 1 == CountingWaiter.wakes
        tasks.cancel_scope.cancel()


async def test_passed_records_are_accepted_after_progress_that_left_none() -> None:
    """A loop has accepted its records itself before the task looks for them."""
    bench = Bench()
    progress = AutoResetEvent()
    loop = RecordIterator[bytes, bytes](bench.deliveries, progress.set)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept_passed_records, bench.readers, progress)
        progress.set()
        await other_tasks_have_run()
        lease = bench.acquire(0, 3)
        for _ in range(2):
            await anext(loop)
        await until(lambda: not lease.is_open(0))
        assert lease.is_open(1)
        tasks.cancel_scope.cancel()


class AcceptedAlready:
    """A queue whose loop has accepted all its records itself."""

    def __init__(self) -> None:
        self.looks = 0

    def accept_passed(self) -> bool:
        self.looks += 1
        return False


@pytest.mark.parametrize(
    "anyio_backend", [virtual_time.backend(name) for name in ("asyncio", "trio")]
)
async def test_passed_records_of_a_fast_loop_are_looked_for_once_per_slice(
    anyio_backend: object,
) -> None:
    queue, progress = AcceptedAlready(), AutoResetEvent()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept_passed_records, queue, progress)
        for _ in range(10):
            progress.set()
            await anyio.sleep(SLICE / 5)

        assert queue.looks in (1, 2)
        tasks.cancel_scope.cancel()
