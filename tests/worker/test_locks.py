"""The keeper of locks loses each record once."""

from collections.abc import Sequence

import anyio
import pytest

from sharecons.net.io.event_loop import Clock, running_clock
from sharecons.testing.virtual_time import Backend
from sharecons.worker.locks import WATCH_INTERVAL, LockKeeper
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.renewals import RenewalSchedule
from sharecons.worker.machine.scheduler import Scheduler

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


class Locked:
    """A record whose lock ends at the deadline."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.lock_deadline = clock() + seconds

    @property
    def held(self) -> bool:
        return self._clock() < self.lock_deadline


async def test_lock_that_ends_as_sessions_are_checked_is_lost_once() -> None:
    clock = running_clock()
    scheduler = Scheduler(concurrency=1, max_bytes=1000)
    lost: list[WorkItem] = []

    def lose(items: Sequence[WorkItem]) -> None:
        lost.extend(items)
        for each in items:
            scheduler.remove(each)

    schedule = RenewalSchedule(1000.0, renews=False)
    keeper = LockKeeper(scheduler, schedule, clock, lose, end_lease=lost.append)
    item = WorkItem(Locked(clock, 2 * WATCH_INTERVAL), 1)
    scheduler.add(item)
    keeper.add(item)

    with anyio.move_on_after(5.0):
        await keeper.run()

    assert [item] == lost
