"""Damaged records do not delay the records behind them."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from crc32c import crc32c

from sharecons import ShareConsumer, ShareWorker
from sharecons.errors import CorruptRecordsError
from sharecons.records.encoder import NewRecord, encode
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.consumer.consuming import consuming
from tests.waiting import until
from tests.worker.working import working

pytestmark = pytest.mark.anyio

CODEC_AT = 22
"""The byte of a batch whose last bits are its codec."""

CRC_AT = 17
CRC_START = 21

DAMAGED = 5
INTACT = 1000

JOINING = 0.1
MAX_DELAY = 0.05
"""Seconds of virtual time, in which only pauses and waits take time. Five damaged
batches delayed the consumer by 37 s and the worker by 10 s, and by more than two
minutes if they had ten records each."""


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        for name in ("orders", "orders.dead", "orders.retry"):
            broker.create_topic(name, partitions=1)
        yield broker


def produce(broker: EmbeddedBroker, batch: int, *, apart: bool) -> None:
    """Write damaged batches, all in front of the intact ones or each before some."""
    offset = 0
    for _ in range(DAMAGED):
        broker.produce("orders", [b"damaged"] * batch, batch=batch)
        broker.corrupt_batch("orders", 0, offset)
        offset += batch
        if apart:
            count = INTACT // DAMAGED
            broker.produce("orders", [b"intact"] * count, batch=batch)
            offset += count
    if not apart:
        broker.produce("orders", [b"intact"] * INTACT, batch=batch)


async def consume(
    broker: EmbeddedBroker, arrivals: list[float], errors: list[CorruptRecordsError]
) -> None:
    async with consuming(broker) as consumer:
        while len(arrivals) < INTACT:
            try:
                async for record in consumer:
                    assert record.value == b"intact"
                    arrivals.append(anyio.current_time())
                    if len(arrivals) == INTACT:
                        break
            except CorruptRecordsError as error:
                errors.append(error)


LAYOUTS = pytest.mark.parametrize(
    ("batch", "apart"), [(1, False), (10, False), (1, True), (10, True)]
)


def rejected_by(client: ShareConsumer | ShareWorker[Any, Any]) -> float:
    """Return the value of the metric."""
    if isinstance(client, ShareWorker):
        return client.consumer_metrics()["sharecons-damaged-records-rejected-total"]
    return client.metrics()["sharecons-damaged-records-rejected-total"]


@LAYOUTS
async def test_damaged_records_do_not_delay_a_consumer(
    broker: EmbeddedBroker, batch: int, apart: bool
) -> None:
    produce(broker, batch, apart=apart)
    began = anyio.current_time()
    arrivals: list[float] = []

    with anyio.fail_after(300):
        await consume(broker, arrivals, [])

    assert arrivals[-1] - began <= JOINING + MAX_DELAY


@LAYOUTS
async def test_damaged_records_do_not_delay_a_worker(
    broker: EmbeddedBroker, batch: int, apart: bool
) -> None:
    produce(broker, batch, apart=apart)
    began = anyio.current_time()
    arrivals: list[float] = []

    async def handle(record: Any) -> None:
        arrivals.append(anyio.current_time() - began)

    async with working(broker, handle, within=300) as worker:
        await until(lambda: len(arrivals) >= INTACT, within=200)
        await until(lambda: rejected_by(worker) == DAMAGED * batch, within=200)

    assert max(arrivals) <= JOINING + MAX_DELAY
    assert rejected_by(worker) == DAMAGED * batch


async def test_damaged_records_are_released_once_and_then_rejected(
    broker: EmbeddedBroker,
) -> None:
    produce(broker, 1, apart=False)
    errors: list[CorruptRecordsError] = []

    with anyio.fail_after(300):
        await consume(broker, [], errors)

    treated = sorted((error.first_offset, error.rejected) for error in errors)
    assert treated == [
        (offset, rejected) for offset in range(DAMAGED) for rejected in (False, True)
    ]


async def test_records_of_an_unknown_codec_are_released_at_each_delivery(
    broker: EmbeddedBroker,
) -> None:
    """Another version of the client might read them."""
    batch = bytearray(encode([NewRecord(value=b"new", timestamp=0)]))
    batch[CODEC_AT] |= 7
    checksum = crc32c(batch[CRC_START:])
    batch[CRC_AT:CRC_START] = checksum.to_bytes(4, "big")
    broker.load_log("orders", 0, bytes(batch))
    rejected: list[bool] = []

    async with consuming(broker) as consumer:
        while len(rejected) < 3:
            try:
                await anext(aiter(consumer))
            except CorruptRecordsError as error:
                rejected.append(error.rejected)

    assert rejected == [False, False, False]
    assert rejected_by(consumer) == 0


async def test_records_damaged_in_one_transfer_are_delivered(
    broker: EmbeddedBroker,
) -> None:
    broker.produce("orders", [b"damaged"])
    broker.corrupt_batch("orders", 0, 0)
    async with consuming(broker) as consumer:
        with pytest.raises(CorruptRecordsError, match="released for another delivery"):
            await anext(aiter(consumer))
        broker.corrupt_batch("orders", 0, 0)  # this restores it

        record = await anext(aiter(consumer))

    assert (record.value, record.delivery_count) == (b"damaged", 2)


async def test_damaged_records_delay_several_consumers_by_less_than_a_second(
    broker: EmbeddedBroker,
) -> None:
    produce(broker, 10, apart=False)
    began = anyio.current_time()
    arrivals: list[float] = []

    with anyio.fail_after(300):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(consume, broker, arrivals, [])
            await until(lambda: len(arrivals) >= INTACT, within=300)
            tasks.cancel_scope.cancel()

    assert max(arrivals) - began <= 1
