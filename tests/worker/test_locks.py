"""The keeper of locks loses each record once, as soon as its lock is lost."""

from collections.abc import Sequence

import anyio
import pytest

from sharecons import Record
from sharecons.member.lock_keeper import LockKeeper
from sharecons.net.io.event_loop import Clock, running_clock
from sharecons.protocol.acknowledge.renewals import RenewalSchedule
from sharecons.testing import EmbeddedBroker
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.settings import DEFAULTS
from tests.waiting import until
from tests.worker.working import working

pytestmark = pytest.mark.anyio

MILLISECOND = 0.001


class Locked:
    """A record whose lock ends at the deadline, or with `lose`."""

    looks = 0

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._deadline = clock() + seconds

    def lose(self) -> None:
        self._deadline = float("-inf")

    @property
    def lock_deadline(self) -> float:
        Locked.looks += 1
        return self._deadline

    @property
    def held(self) -> bool:
        Locked.looks += 1
        return self._clock() < self._deadline


class Bench:
    """A keeper of records that are not renewed, and the records that it has lost."""

    def __init__(self) -> None:
        self.clock = running_clock()
        self.lost: list[WorkItem] = []
        self._scheduler = Scheduler([DEFAULTS], concurrency=20_000, max_bytes=1 << 20)
        schedule = RenewalSchedule(renews=False)
        self.keeper = LockKeeper(
            self._scheduler,
            schedule,
            self.clock,
            self._lose,
            self.lost.append,
            group_id="billing",
        )

    def _lose(self, items: Sequence[WorkItem], reason: str) -> None:
        self.reason = reason
        self.lost.extend(items)
        for each in items:
            each.queue.remove(each)

    def hold(self, seconds: float) -> tuple[WorkItem, Locked]:
        record = Locked(self.clock, seconds)
        item = WorkItem(record, 1)
        item.queue = self._scheduler.queue_of(item.settings)
        item.queue.add(item)
        self.keeper.add(item)
        return item, record

    async def run(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.keeper.run()


async def test_lock_that_ends_as_lost_locks_are_reported_is_lost_once() -> None:
    bench = Bench()
    item, _ = bench.hold(1.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.run, 5.0)
        await anyio.sleep(1.0)
        bench.keeper.on_locks_lost("the session ended")

    assert [item] == bench.lost


async def test_lost_lock_is_lost_as_soon_as_it_is_reported() -> None:
    bench = Bench()
    item, record = bench.hold(100.0)
    bench.hold(100.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.run, 5.0)
        await anyio.sleep(1.0)
        record.lose()
        before = bench.clock()
        bench.keeper.on_locks_lost("the session ended")
        await until(lambda: bool(bench.lost), pause=MILLISECOND)

        assert bench.clock() - before <= MILLISECOND
    assert [item] == bench.lost
    assert "the session ended" == bench.reason


async def test_record_whose_lock_was_lost_before_it_is_added_is_lost() -> None:
    bench = Bench()
    item, _ = bench.hold(float("-inf"))

    await bench.run(1.0)

    assert [item] == bench.lost
    assert "the lock has ended" == bench.reason


@pytest.mark.parametrize("count", [1, 10_000])
async def test_idle_keeper_looks_at_no_record_however_many_it_holds(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    for _ in range(count):
        bench.hold(3600.0)
    monkeypatch.setattr(Locked, "looks", 0)

    await bench.run(600.0)

    assert 0 == Locked.looks


async def test_handler_is_cancelled_milliseconds_after_its_session_is_lost(
    embedded: EmbeddedBroker,
) -> None:
    clock = running_clock()
    finish = anyio.Event()
    running = cancelled_at = 0.0

    async def handle(record: Record[bytes, bytes]) -> None:
        nonlocal running, cancelled_at
        running += 1
        if record.offset or cancelled_at:
            await finish.wait()
            return
        try:
            await anyio.sleep_forever()
        finally:
            cancelled_at = clock()
            finish.set()

    embedded.produce("orders", [b"stays", b"ends"])
    async with working(embedded, handle, concurrency=2, shutdown_grace=1.0):
        await until(lambda: running == 2)
        for api in ("ShareFetch", "ShareAcknowledge"):
            embedded.faults.on(api).cut()
        # A later delivery of the record would cancel the handler as well.
        embedded.faults.on("ShareFetch", times=None).lose()
        before = clock()
        finish.set()
        await until(lambda: cancelled_at > 0.0)

    assert cancelled_at - before <= 10 * MILLISECOND, "with the linger"
