"""`values="memoryview"`: values are views of the response, in all ways to read."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from sharecons import ShareConsumer
from sharecons.errors import DeserializationError
from sharecons.records.large_records import LARGE
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.consumer.consuming import consuming

pytestmark = pytest.mark.anyio

VALUES = [b"small", b"l" * LARGE, b"", None, b"huge" * LARGE]


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=1)
        yield broker


async def read(consumer: ShareConsumer[Any, Any], way: str, count: int) -> list[Any]:
    records: list[Any] = []
    if way == "loop":
        async for record in consumer:
            records.append(record)
            if len(records) == count:
                break
    elif way == "batches":
        async for batch in consumer.batches():
            records += batch
            if len(records) == count:
                break
    else:
        while len(records) < count:
            records += await consumer.poll(timeout=1)
    return records


@pytest.mark.parametrize("way", ["loop", "batches", "poll"])
@pytest.mark.parametrize("batch", [1, 5])
async def test_values_are_views_that_stay_valid(
    broker: EmbeddedBroker, way: str, batch: int
) -> None:
    broker.produce("orders", VALUES, keys=[b"key"] * len(VALUES), batch=batch)

    async with consuming(broker, values="memoryview") as consumer:
        records = await read(consumer, way, len(VALUES))
        broker.produce("orders", [b"x" * LARGE] * 10)
        await read(consumer, way, 10)

    assert VALUES == [record.value for record in records]
    for record in records:
        assert b"key" == record.key
        assert isinstance(record.key, bytes)
        assert record.value is None or isinstance(record.value, memoryview)


@pytest.mark.parametrize("way", ["loop", "batches", "poll"])
async def test_values_are_bytes_by_default(broker: EmbeddedBroker, way: str) -> None:
    broker.produce("orders", VALUES, batch=1)

    async with consuming(broker) as consumer:
        records = await read(consumer, way, len(VALUES))

    assert VALUES == [record.value for record in records]
    assert {bytes, type(None)} == {type(record.value) for record in records}


async def test_deserializer_receives_the_view(broker: EmbeddedBroker) -> None:
    broker.produce("orders", [b"12", b"not a number"])
    received: list[object] = []

    def to_int(value: bytes) -> int:
        received.append(value)
        return int(bytes(value))

    async with consuming(
        broker, values="memoryview", value_deserializer=to_int
    ) as consumer:
        records = aiter(consumer)
        assert 12 == (await anext(records)).value
        with pytest.raises(DeserializationError) as caught:
            await anext(records)

    assert all(isinstance(value, memoryview) for value in received)
    assert b"not a number" == caught.value.record.value
