"""Records that fail at the same moment: each has its own attempts and one end.

The clock is virtual, so that the handlers of all records raise at one time.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from sharecons import (
    BatchHandler,
    DeadLetterQueue,
    Record,
    Retry,
    RetryPolicy,
    ShareConsumer,
)
from sharecons.copies.dead_letter_headers import read_origin
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, settled, working

pytestmark = pytest.mark.anyio

COUNT = 50
VALUES = [b"%d" % number for number in range(COUNT)]
DEAD = DeadLetterQueue("orders.dead")
ATTEMPTS = 3
POLICY = RetryPolicy(max_attempts=ATTEMPTS)


async def fail(record: Record[Any, Any]) -> None:
    await anyio.sleep(1.0)
    raise Retry(after=1.0)


def dead_letters(broker: MemoryBroker) -> list[tuple[int, int]]:
    """Return the source offset and the attempts of each dead letter."""
    origins = [read_origin(each.headers) for each in broker.records("orders.dead")]
    return sorted((each.offset, each.attempts) for each in origins if each)


async def test_records_that_fail_together_have_all_their_attempts(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", VALUES)
    handled = Handled(fail)

    async with working(
        broker, handled, concurrency=COUNT, retry=POLICY, dead_letter=DEAD
    ):
        await until(lambda: settled(broker, COUNT))

    assert COUNT == handled.max_running
    assert Counter(dict.fromkeys(VALUES, ATTEMPTS)) == Counter(handled.calls)
    assert [(offset, ATTEMPTS) for offset in range(COUNT)] == dead_letters(broker)


async def test_batches_that_fail_together_have_all_their_attempts(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", VALUES)
    calls: list[bytes] = []

    async def fail_all(batch: Sequence[Record[Any, Any]]) -> None:
        calls.extend(record.value for record in batch)
        await anyio.sleep(1.0)
        raise Retry(after=1.0)

    handler = BatchHandler(fail_all, max_records=10, max_wait=0.1)
    async with working(broker, handler, concurrency=5, retry=POLICY, dead_letter=DEAD):
        await until(lambda: settled(broker, COUNT))

    assert Counter(dict.fromkeys(VALUES, ATTEMPTS)) == Counter(calls)
    assert [(offset, ATTEMPTS) for offset in range(COUNT)] == dead_letters(broker)


async def test_some_failures_of_a_batch_do_not_repeat_its_other_records(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", VALUES)
    failing = set(VALUES[::2])
    calls: list[bytes] = []

    async def fail_some(batch: Sequence[Record[Any, Any]]) -> list[Exception | None]:
        calls.extend(record.value for record in batch)
        await anyio.sleep(1.0)
        return [
            Retry(after=1.0) if record.value in failing else None for record in batch
        ]

    handler = BatchHandler(fail_some, max_records=10, max_wait=0.1)
    async with working(broker, handler, concurrency=5, retry=POLICY, dead_letter=DEAD):
        await until(lambda: settled(broker, COUNT))

    expected = {value: ATTEMPTS if value in failing else 1 for value in VALUES}
    assert Counter(expected) == Counter(calls)
    assert [(offset, ATTEMPTS) for offset in range(0, COUNT, 2)] == dead_letters(broker)


async def test_failures_that_stop_the_worker_release_each_record_once(
    embedded: EmbeddedBroker,
) -> None:
    """Ten keys with five records each: a failed record releases those behind it."""
    keys = [b"%d" % (number % 10) for number in range(COUNT)]
    embedded.produce("orders", VALUES, keys=keys)

    async def fail_and_stop(record: Record[Any, Any]) -> None:
        await anyio.sleep(1.0)
        raise ValueError("no")

    handled = Handled(fail_and_stop)
    with pytest.RaisesGroup(ValueError):
        async with working(
            embedded, handled, concurrency=10, key_order=True, stop_on_error=True
        ) as worker:
            await anyio.sleep(5.0)

    assert sorted(VALUES[:10]) == sorted(handled.calls)
    async with ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=embedded.bootstrap_servers,
        network=embedded.network,
        acknowledgement="explicit",
    ) as consumer:
        records: list[Record[Any, Any]] = []
        with anyio.fail_after(10.0):
            while len(records) < COUNT:
                records += await consumer.poll(timeout=1.0)
    assert list(range(COUNT)) == sorted(record.offset for record in records)
    again = [record for record in records if record.delivery_count > 1]
    assert {2} == {record.delivery_count for record in again}
    assert len(again) == worker.stats.released
