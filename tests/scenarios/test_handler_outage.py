"""Handlers that release all records for a while use few deliveries."""

import logging
import re
from contextlib import suppress

import anyio
import pytest

from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue, take
from tests.scenarios.versions import HAS_VERSION_2, since_4_2
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH]


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


class Handlers:
    """Handlers of one queue that release every record while they are `down`."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.down = True
        self.done: set[tuple[int, int]] = set()
        self.deliveries = 0
        self.archived = 0

    async def run(self, consumers: int, records: int, outage: float) -> None:
        """Process records after an outage (seconds)."""
        async with anyio.create_task_group() as tasks:
            for _ in range(consumers):
                tasks.start_soon(self._consume)
            await until(lambda: self.deliveries)
            await anyio.sleep(outage)  # real time: the outage
            self.down = False
            with suppress(TimeoutError):
                await until(lambda: len(self.done) >= records, within=10)
            tasks.cancel_scope.cancel()

    async def _consume(self) -> None:
        async with self.queue.consumer() as consumer:
            try:
                async for record in consumer:
                    self.deliveries += 1
                    if self.down:
                        record.release()
                    else:
                        record.accept()
                        self.done.add((record.partition, record.offset))
            finally:
                self.archived += consumer.metrics()["sharecons-records-archived-total"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("consumers", "lost"), [(1, 0), pytest.param(3, 5, marks=since_4_2)]
)
async def test_outage_of_four_seconds_archives_almost_no_record(
    admin: AnyAdmin, consumers: int, lost: int
) -> None:
    queue = Queue(admin)
    queue.produce([b"record"] * 500)
    handlers = Handlers(queue)

    await handlers.run(consumers, 500, outage=4)

    assert len(handlers.done) >= 500 - lost
    assert handlers.archived == 500 - len(handlers.done)
    if HAS_VERSION_2:  # otherwise each delivery is of the whole batch
        assert handlers.deliveries < 1200


async def test_released_record_is_redelivered_immediately(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        queue.produce([b"record"])
        (first,) = await take(records, 1)
        first.release()
        began = anyio.current_time()
        (second,) = await take(records, 1)
        elapsed = anyio.current_time() - began
        second.accept()

    assert [1, 2] == [first.delivery_count, second.delivery_count]
    assert elapsed < 0.3


@pytest.mark.client_only
async def test_paused_partition_delays_neither_others_nor_close(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin, partitions=2)
    queue.produce([b"unwanted"], partition=0)
    consumer = queue.consumer(acknowledgement="explicit")
    async with consumer:
        records = aiter(consumer)
        for _ in range(3):  # the next delivery takes 3 s
            (record,) = await take(records, 1)
            record.release()
        delays = []
        for _ in range(5):
            began = anyio.current_time()
            queue.produce([b"record"], partition=1)
            (record,) = await take(records, 1)
            record.accept()
            delays.append(anyio.current_time() - began)
            assert record.value == b"record"
        began = anyio.current_time()
    closing = anyio.current_time() - began

    assert sorted(delays)[3] < 0.3
    assert closing < 1.0


def offsets_in(line: str) -> range:
    """Return the offsets of partition 0 that a line has as one range of positions."""
    found = re.search(r" positions=\S+-0@(\d+)(?:-(\d+))? ", line)
    assert found is not None, line
    first, last = found.groups()
    return range(int(first), int(last or first) + 1)


@pytest.mark.client_only
async def test_release_on_last_delivery_is_logged_and_counted(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue(admin, **{"share.delivery.count.limit": "2"})
    queue.produce([b"record"] * 4)
    caplog.set_level(logging.WARNING, "sharecons")
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        with anyio.fail_after(20):
            for _ in range(8):
                (await anext(records)).release()
                await consumer.commit()
        # The delivery limit is read again before the records are counted.
        archived = "sharecons-records-archived-total"
        await until(lambda: consumer.metrics()[archived] == 4)

    # One when the first is archived, and one with the others when the consumer closes.
    lines = [text for text in caplog.messages if "last delivery" in text]
    assert len(lines) <= 2
    assert all("delivery_limit=2" in line for line in lines)
    assert [0, 1, 2, 3] == [offset for line in lines for offset in offsets_in(line)]
