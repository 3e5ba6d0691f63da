"""Requests of a worker that waits for new records."""

from functools import partial
from typing import Any

import anyio
import pytest

from sharecons import Record, Retry, ShareWorker
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.working import Handled, working

pytestmark = pytest.mark.anyio

BROKERS = ("embedded",)

MAX_WAIT = 0.5
"""Seconds that a fetch of an idle member waits at the broker: the default."""

idle = partial(working, max_wait=MAX_WAIT, within=60.0)


async def fetches_per_second(
    worker: ShareWorker[Any, Any], seconds: float = 10.0
) -> float:
    """Return how many fetches the worker sends per second, for `seconds`."""

    def count() -> float:
        return worker.consumer_metrics()["fetch-total"]

    before = count()
    await anyio.sleep(seconds)
    return (count() - before) / seconds


async def retry_later(record: Record[Any, Any]) -> None:
    """Fail for records with the value "fails"."""
    if record.value == b"fails":
        raise Retry(after=600)


@pytest.mark.parametrize("options", [{}, {"key_order": True}], ids=["", "key_order"])
async def test_worker_with_waiting_records_fetches_as_rarely_as_without(
    broker: EmbeddedBroker, options: dict[str, Any]
) -> None:
    async with idle(broker, retry_later, **options) as worker:
        await until(lambda: worker.assignment)
        before = await fetches_per_second(worker)
        # With `key_order`, the second record is blocked by the first.
        broker.produce("orders", [b"fails", b"behind"], keys=[b"key", b"key"])
        await until(lambda: worker.stats.waiting)
        await anyio.sleep(5)
        waiting = await fetches_per_second(worker)

    assert before == pytest.approx(1 / MAX_WAIT, rel=0.15)
    assert waiting == pytest.approx(before, rel=0.15)


async def test_worker_with_waiting_records_receives_new_records_immediately(
    broker: EmbeddedBroker,
) -> None:
    delays: list[float] = []

    async def handle(record: Record[Any, Any]) -> None:
        await retry_later(record)
        delays.append(anyio.current_time() - float(record.value))

    broker.produce("orders", [b"fails"])
    async with idle(broker, handle) as worker:
        await until(lambda: worker.stats.waiting)
        await anyio.sleep(5)
        for number in range(10):
            await anyio.sleep(1 + 0.07 * number)
            broker.produce("orders", [b"%r" % anyio.current_time()])
        await until(lambda: len(delays) == 10)

    assert max(delays) < 0.05


async def test_retried_record_is_acknowledged_when_it_is_due(
    broker: EmbeddedBroker,
) -> None:
    """A fetch that waits at the broker would delay the acknowledgement."""
    broker.produce("orders", [b"x"])

    async def fail_once(record: Record[Any, Any]) -> None:
        if len(handled.calls) == 1:
            raise Retry(after=10.13)

    handled = Handled(fail_once)
    async with idle(broker, handled) as worker:
        await until(lambda: len(handled.calls) == 2)
        second = anyio.current_time()
        await until(lambda: broker.group("billing").partitions[0].start_offset == 1)
        delay = anyio.current_time() - second
        assert not worker.stats.waiting

    assert delay < 0.12


async def test_locks_of_waiting_records_are_renewed_on_time(
    broker: EmbeddedBroker,
) -> None:
    broker.set_group_config("billing", {"share.record.lock.duration.ms": "15000"})
    broker.produce("orders", [b"fails"])
    renewals = broker.faults.on("ShareAcknowledge", times=None).delay(0)
    async with idle(broker, retry_later) as worker:
        await until(lambda: worker.stats.waiting)
        await anyio.sleep(31)

        assert worker.stats.waiting == 1
        assert worker.stats.locks_lost == 0
        # At half of the lock.
        assert renewals.hits == 4
