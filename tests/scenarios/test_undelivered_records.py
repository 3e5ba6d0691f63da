"""Records that are fetched and not taken yet: none of their deliveries ends unseen.

The member's buffer has them while their topic is paused, while a handler blocks the
event loop, or while the process is stopped.
"""

import asyncio
import time
from typing import Any

import anyio
import pytest
import sniffio
import trio

from sharecons import Record, RetryPolicy
from sharecons.testing.virtual_time import VirtualTimeLoop
from tests.scenarios.dead_letter_setup import LIMIT_2, Setup
from tests.scenarios.embedded_admin import LOOPS, AnyAdmin, EmbeddedAdmin
from tests.scenarios.versions import since_4_3

pytestmark = [pytest.mark.anyio, since_4_3, pytest.mark.timeout(60)]

LOCK = 1.0
CONFIG = {**LIMIT_2, "share.record.lock.duration.ms": "1000"}
COUNT = 60


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


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


async def test_records_beside_a_handler_that_blocks_the_loop_become_dead_letters(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    setup = Setup(admin, CONFIG)
    setup.queue.produce([b"%d" % number for number in range(COUNT)])
    done: set[int] = set()
    redelivered: set[int] = set()

    async def handle(record: Record[Any, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        is_first_again = record.delivery_count == 2 and not redelivered
        if is_first_again:  # others arrive with it; later ones arrive alone
            redelivered.add(record.offset)
        if is_first_again or record.offset == COUNT // 2:
            block(1.3 * LOCK)
        done.add(record.offset)

    retry = RetryPolicy(max_attempts=9)
    async with setup.working(handle, concurrency=1, retry=retry) as worker:
        await setup.wait_until_settled()

    letters = {origin.offset: origin.reason for origin in await setup.origins()}
    assert set(range(COUNT)) == done | letters.keys()
    assert {"its lock was lost on its last delivery"} == set(letters.values())
    # A real broker delivers records near the limit one by one: few are in the buffer.
    at_least = 2 if isinstance(admin, EmbeddedAdmin) else 1
    assert worker.stats.dead_lettered == len(letters) >= at_least
