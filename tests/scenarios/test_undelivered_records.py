"""Records that are fetched and not taken yet: none of their deliveries ends unseen.

The member's buffer has them while their topic is paused, while the event loop is
blocked, if a broker's response is late, or if a connection is lost.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import pytest
import sniffio
import trio

from sharecons import Record, RetryPolicy
from sharecons.testing.virtual_time import VirtualTimeLoop
from tests.scenarios.dead_letter_setup import LIMIT_2, Setup, archived_offsets
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.interrupted_network import InterruptedNetwork
from tests.scenarios.versions import since_4_3
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH, since_4_3, pytest.mark.timeout(60)]

LOCK = 1.0
CONFIG = {**LIMIT_2, "share.record.lock.duration.ms": "1000"}
COUNT = 60

WARM_UP, FEW = 40, 8
"""Records after which a client fetches FEW in one response."""

LAST = [*range(WARM_UP, WARM_UP + FEW)]


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


def block(seconds: float) -> None:
    """Block the event loop; a virtual clock jumps."""
    if sniffio.current_async_library() == "trio":
        clock: Any = trio.lowlevel.current_clock()
        if hasattr(clock, "jump"):
            clock.jump(seconds)
            return
    elif isinstance(loop := asyncio.get_running_loop(), VirtualTimeLoop):
        loop._selector.passed += seconds
        return
    time.sleep(seconds)  # real time: nothing is renewed meanwhile


async def test_circuit_breaker_that_pauses_beyond_the_lock_costs_no_delivery(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin, CONFIG)
    setup.queue.produce([b"%d" % number for number in range(COUNT)])
    delivery_counts: dict[int, int] = {}

    async def handle(record: Record[Any, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        delivery_counts[record.offset] = record.delivery_count
        if len(delivery_counts) in (20, 40) and not worker.paused:
            worker.pause(setup.queue.topic)

    async def close_breaker() -> None:
        for _ in range(2):
            while not worker.paused:
                await anyio.sleep(0.01)
            await anyio.sleep(1.6 * LOCK)  # real time: the locks would end
            worker.resume(setup.queue.topic)

    async with setup.working(handle, concurrency=1) as worker:
        await close_breaker()
        await setup.wait_until_settled()

    assert COUNT == len(delivery_counts) == worker.stats.accepted
    assert {1} == set(delivery_counts.values())
    assert [] == await setup.origins()


async def test_records_beside_a_handler_that_blocks_the_loop_are_done_or_dead_letters(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    setup = Setup(admin, CONFIG)
    setup.queue.produce([b"%d" % number for number in range(COUNT)])
    done: set[int] = set()
    done_last: set[int] = set()
    redelivered: set[int] = set()

    async def handle(record: Record[Any, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        is_first_again = record.delivery_count == 2 and not redelivered
        if is_first_again:  # others arrive with it; later ones arrive alone
            redelivered.add(record.offset)
        if is_first_again or record.offset == COUNT // 2:
            block(1.3 * LOCK)
        done.add(record.offset)
        if record.delivery_count == 2:
            done_last.add(record.offset)

    retry = RetryPolicy(max_attempts=9)
    async with setup.working(handle, concurrency=1, retry=retry) as worker:
        await setup.wait_until_settled()

    letters = {origin.offset: origin.reason for origin in await setup.origins()}
    assert set(range(COUNT)) == done | letters.keys()
    assert not letters.keys() & done_last
    assert {"its lock was lost on its last delivery"} >= set(letters.values())
    assert worker.stats.dead_lettered == len(letters)


Interrupt = Callable[[], Awaitable[None]]


class Working:
    """A worker or a consumer that receives nothing but the records of its warm-up.

    Afterwards the deliveries of all others end in its buffer.

    Attributes:
        client: the worker or the consumer.
        received: the offsets that handler or loop have received.
    """

    def __init__(self, admin: AnyAdmin, config: Mapping[str, str] = CONFIG) -> None:
        self.setup = Setup(admin, config)
        self.network = InterruptedNetwork(admin.network)
        self.received: list[int] = []
        self.client: Any = None
        self._tasks: Any = None

    async def run(self, client: str, interrupt: Interrupt) -> None:
        """Run the client until the last record is settled."""
        queue = self.setup.queue
        options: dict[str, Any] = {"network": self.network}
        queue.produce([b"x"] * WARM_UP)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as self._tasks:
                if client == "consumer":
                    async with queue.consumer(**options, max_wait=0.1) as self.client:
                        self._tasks.start_soon(self._read)
                        await self._end_deliveries(interrupt)
                        self._tasks.cancel_scope.cancel()
                else:
                    if client == "worker without a queue":
                        options["dead_letter"] = None
                    self.client = self.setup.worker(self._handle, **options)
                    self._tasks.start_soon(self.client.run)
                    await self._end_deliveries(interrupt)
                    self.client.stop()

    async def _end_deliveries(self, interrupt: Interrupt) -> None:
        await self.setup.wait_until_settled()
        self.network.on_records = interrupt
        self.setup.queue.produce([b"x"] * FEW)
        await self.setup.wait_until_settled()
        self.network.on_records = None

    async def _read(self) -> None:
        async for record in self.client:
            self.received.append(record.offset)

    async def _handle(self, record: Record[Any, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        if record.offset in LAST:
            await anyio.sleep_forever()
        self.received.append(record.offset)

    async def check(self, client: str, caplog: pytest.LogCaptureFixture) -> None:
        """Check that each record has a dead letter, or its position in a line."""
        assert sorted(self.received) == [*range(WARM_UP)]
        letters = [origin.offset for origin in await self.setup.origins()]
        assert letters == (LAST if client == "worker" else [])
        assert archived_offsets(caplog.text) == ([] if client == "worker" else LAST)

    # Ends of deliveries.

    async def respond_late(self) -> None:
        await anyio.sleep(1.3 * LOCK)  # real time: the locks end

    async def block(self) -> None:
        await anyio.lowlevel.checkpoint()
        block(1.3 * LOCK)

    async def pause(self) -> None:
        """Pause for longer than the lock."""
        self.client.pause(self.setup.queue.topic)
        self._tasks.start_soon(self._resume, 1.3 * LOCK)
        await anyio.lowlevel.checkpoint()

    async def pause_and_cut(self) -> None:
        """Lose the connection once the records are in the buffer."""
        self.client.pause(self.setup.queue.topic)
        self._tasks.start_soon(self._resume, 0.1 * LOCK)
        await anyio.lowlevel.checkpoint()

    async def cut(self) -> None:
        """Lose the connection once a handler hangs, and others wait for their call."""
        self._tasks.start_soon(self._cut)
        await anyio.lowlevel.checkpoint()

    async def lose_response(self) -> None:
        await self.network.cut()
        raise ConnectionResetError("the response is lost")

    async def _cut(self) -> None:
        await anyio.sleep(0.1 * LOCK)  # real time: the records are in the worker
        await self.network.cut()

    async def _resume(self, seconds: float) -> None:
        await anyio.sleep(seconds)  # real time: the records are in the buffer
        if seconds < LOCK:
            await self.network.cut()
        if self.network.on_records is not None:
            self.client.resume(self.setup.queue.topic)


WITHOUT_QUEUE = pytest.param("worker without a queue", marks=pytest.mark.client_only)


@pytest.mark.parametrize("client", ["worker", WITHOUT_QUEUE, "consumer"])
@pytest.mark.parametrize("way", ["respond_late", "block", "pause", "pause_and_cut"])
async def test_last_delivery_that_ends_in_the_buffer_is_a_dead_letter_or_logged(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture, client: str, way: str
) -> None:
    renewals = {"share.renew.acknowledge.enable": "false"} if way == "pause" else {}
    working = Working(admin, {**CONFIG, **renewals})

    await working.run(client, getattr(working, way))

    await working.check(client, caplog)


@pytest.mark.parametrize("client", ["worker", WITHOUT_QUEUE])
async def test_last_delivery_that_ends_in_the_worker_is_a_dead_letter_or_logged(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture, client: str
) -> None:
    working = Working(admin)

    await working.run(client, working.cut)

    await working.check(client, caplog)


async def test_last_delivery_whose_response_is_lost_has_no_dead_letter(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    working = Working(admin)

    await working.run("worker", working.lose_response)

    assert [] == await working.setup.origins()
    assert [] == archived_offsets(caplog.text)


@pytest.mark.parametrize("end", ["connection", "close"])
async def test_last_deliveries_in_the_buffer_of_a_slow_consumer_are_logged(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture, end: str
) -> None:
    setup = Setup(admin, CONFIG)
    network = InterruptedNetwork(admin.network)
    setup.queue.produce([b"x"] * WARM_UP)
    options = {"network": network, "max_wait": 0.1, "acknowledgement": "explicit"}
    async with setup.queue.consumer(**options) as consumer:
        received = 0
        while received < WARM_UP:
            for record in await consumer.poll(timeout=1.0, max_records=5):
                record.accept()
                received += 1
            await consumer.commit()
        setup.queue.produce([b"x"] * FEW)
        for delivery_count in (1, 2):
            (record,) = await consumer.poll(timeout=5.0, max_records=1)
            assert (WARM_UP, delivery_count) == (record.offset, record.delivery_count)
            await until(lambda: consumer._source.buffered == FEW - 1)
            if delivery_count == 1 or end == "connection":
                await network.cut()
    await setup.wait_until_settled()

    assert archived_offsets(caplog.text) == LAST
