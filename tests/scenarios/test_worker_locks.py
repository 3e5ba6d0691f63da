"""Locks of a worker's records: renewed, lost, and not wasted by prefetching.

On a virtual clock with the embedded broker, where ten minutes take no time.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons import Record, ShareWorker
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.broker.apis import APIS
from sharecons.testing.pytest_plugin import SETTINGS
from tests.scenarios.handled import Handled, hang_at_first
from tests.waiting import until

pytestmark = pytest.mark.anyio

LONG_LOCK = 15.0
STEP = 0.5
"""Seconds of virtual time between two looks at a condition: each look uses CPU."""

SHARE_FETCH, SHARE_ACKNOWLEDGE = 78, 79


@pytest.fixture(params=["asyncio", pytest.param("trio", marks=pytest.mark.thorough)])
def anyio_backend(request: pytest.FixtureRequest) -> virtual_time.Backend:
    return virtual_time.backend(request.param)


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    settings = {**SETTINGS, "group.share.min.record.lock.duration.ms": "1000"}
    async with EmbeddedBroker(settings=settings, listen=False) as broker:
        broker.create_topic("jobs", partitions=1)
        yield broker


def set_lock(broker: EmbeddedBroker, seconds: float, **config: object) -> None:
    lock = {"share.record.lock.duration.ms": round(seconds * 1000)}
    broker.set_group_config("workers", {**lock, **config})


def without_renewals(broker: EmbeddedBroker) -> None:
    """Limit the broker to the API versions of Kafka 4.1."""
    highest = {SHARE_FETCH: 1, SHARE_ACKNOWLEDGE: 1}

    def respond(request: Any, context: Any) -> dict[str, Any]:
        return {
            "api_keys": [
                {
                    "api_key": key,
                    "min_version": api.versions[0],
                    "max_version": highest.get(key, api.versions[-1]),
                }
                for key, api in APIS.items()
            ]
        }

    broker.faults.on("ApiVersions", times=None).respond(respond)


@asynccontextmanager
async def working(
    broker: EmbeddedBroker,
    handler: Any,
    **options: Any,
) -> AsyncIterator[ShareWorker[Any, Any]]:
    worker = ShareWorker(
        "jobs",
        handler,
        group_id="workers",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        network=broker.network,
        **options,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        try:
            yield worker
        finally:
            worker.stop()


def start_offset(broker: EmbeddedBroker) -> int:
    """Return the group's start offset: the number of settled first records."""
    try:
        partitions = broker.group("workers").partitions
    except LookupError:
        return 0
    return max((each.start_offset for each in partitions), default=0)


async def test_ten_minute_handler_with_a_lock_of_15_seconds_runs_once(
    broker: EmbeddedBroker,
) -> None:
    set_lock(broker, LONG_LOCK)
    broker.produce("jobs", [b"long", b"long", b"short"])
    handled = Handled(lambda record: anyio.sleep(600 if record.value == b"long" else 0))

    async with working(broker, handled, concurrency=2) as worker:
        await until(lambda: start_offset(broker) == 3, within=1300, pause=STEP)

    assert handled.counts == {(1,): 3}
    assert (3, 0) == (worker.stats.accepted, worker.stats.locks_lost)


@pytest.mark.parametrize(
    "apis", [["ShareAcknowledge"], ["ShareAcknowledge", "ShareFetch"]]
)
async def test_handler_is_cancelled_when_the_broker_stalls(
    broker: EmbeddedBroker, apis: list[str]
) -> None:
    set_lock(broker, LONG_LOCK)
    broker.produce("jobs", [b"0", b"1"])
    handled = Handled(hang_at_first)
    async with working(
        broker, handled, on_acknowledged=handled.on_acknowledged, concurrency=2
    ) as worker:
        await until(lambda: len(handled.deliveries) == 2, within=10)
        await anyio.sleep(1.5 * LONG_LOCK)  # the locks are renewed
        assert [] == handled.cancelled
        stalled_at = anyio.current_time()
        stalls = [broker.faults.on(api, times=None).stall() for api in apis]
        await until(lambda: len(handled.cancelled) == 2, within=60, pause=STEP)
        await anyio.sleep(LONG_LOCK)
        assert {} == handled.accepted
        for stall in stalls:
            stall.undo()
        await until(lambda: len(handled.accepted) == 2, within=120, pause=STEP)

    # The last renewal that was confirmed was sent before the stall.
    assert all(0 < end - stalled_at <= LONG_LOCK for end in handled.cancelled)
    assert handled.counts == {(1, 2): 2}
    assert handled.accepted_after_ends
    assert 2 == worker.stats.accepted


def lock_without_renewals(broker: EmbeddedBroker, seconds: float, by: str) -> None:
    if by == "group":
        set_lock(broker, seconds, **{"share.renew.acknowledge.enable": "false"})
        return
    set_lock(broker, seconds)
    if by == "broker":
        without_renewals(broker)


def produce(broker: EmbeddedBroker, records: int, by: str) -> None:
    """Write records; Kafka 4.1 locks whole batches, so they must be small there."""
    size = 1 if by == "broker" else records
    for _ in range(records // size):
        broker.produce("jobs", [b"record"] * size)


@pytest.mark.parametrize("by", ["", "group", "broker"])
@pytest.mark.parametrize(
    ("concurrency", "seconds", "lock", "records"),
    [(2, 1.0, 5.0, 300), (40, 3.0, 5.0, 400), (10, 0.2, 5.0, 600), (40, 0.0, 5.0, 600)],
)
async def test_no_record_loses_its_lock_while_it_waits_for_a_handler(
    broker: EmbeddedBroker,
    by: str,
    concurrency: int,
    seconds: float,
    lock: float,
    records: int,
) -> None:
    """`by` names the part that does not support renewals."""
    lock_without_renewals(broker, lock, by)
    produce(broker, records, by)
    handled = Handled(lambda record: anyio.sleep(seconds))

    async with working(broker, handled, concurrency=concurrency) as worker:
        await until(
            lambda: start_offset(broker) == records, within=4 * records, pause=STEP
        )

    assert handled.counts == {(1,): records}
    assert 0 == worker.stats.locks_lost


@pytest.mark.parametrize("by", ["group", "broker"])
async def test_missing_renewals_are_logged_once(
    broker: EmbeddedBroker, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    lock_without_renewals(broker, 4.0, by)
    produce(broker, 10, by)
    handled = Handled(lambda record: anyio.sleep(3))

    async with working(broker, handled, concurrency=2):
        await until(lambda: start_offset(broker) == 10, within=100, pause=STEP)

    assert 1 == len(caplog.messages), caplog.text
    assert "locks are not renewed" in caplog.text
    assert handled.counts == {(1,): 10}


async def test_handlers_that_become_slow_do_not_cost_the_locks_of_others(
    broker: EmbeddedBroker,
) -> None:
    set_lock(broker, 5.0)
    records = 600
    for _ in range(records // 10):
        broker.produce("jobs", [b"record"] * 10)

    async def slow_down(record: Record[Any, Any]) -> None:
        await anyio.sleep(0.01 if record.offset < 500 else 20.0)

    handled = Handled(slow_down)
    async with working(broker, handled, concurrency=20) as worker:
        await until(lambda: start_offset(broker) == records, within=1000, pause=STEP)

    assert handled.counts == {(1,): records}
    assert 0 == worker.stats.locks_lost


async def test_slow_record_delays_no_other_until_the_window_is_full(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    window, slow = 400, 60.0
    set_lock(broker, 5.0, **{"share.partition.max.record.locks": window})
    for _ in range(100):
        broker.produce("jobs", [b"record"] * 10)
    began = anyio.current_time()

    async def first_is_slow(record: Record[Any, Any]) -> None:
        await anyio.sleep(slow if record.offset == 0 else 0.01)

    handled = Handled(first_is_slow)
    async with working(broker, handled, concurrency=10):
        await until(lambda: len(handled.ends) >= 0.9 * window, within=10)
        quick = anyio.current_time() - began
        await anyio.sleep(5.0)
        stalled = len(handled.ends)
        await until(lambda: start_offset(broker) == 1000, within=100, pause=STEP)

    # Nine other slots process the window at 900 records/s; the rest is joining.
    assert quick < 3.0
    assert 0.9 * window <= stalled <= window + 10, "whole batches are in the window"
    assert handled.ends[0] - began == pytest.approx(slow, abs=2.0)
    assert 1 == caplog.text.count("a record holds up its partition")
    assert handled.counts == {(1,): 1000}
