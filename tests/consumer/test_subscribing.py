"""Another subscription while a fetch is in flight."""

from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.errors import NotSubscribedError
from sharecons.testing import EmbeddedBroker, OffsetState
from sharecons.testing.pytest_plugin import SETTINGS
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    topics = {"orders": 1, "refunds": 1}
    async with EmbeddedBroker(settings=SETTINGS, listen=False, topics=topics) as broker:
        broker.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
        yield broker


def orders(broker: EmbeddedBroker) -> list[tuple[OffsetState, int]]:
    """Return the state and the delivery count of each record of orders in flight."""
    return [
        (each.state, each.delivery_count)
        for partition in broker.group("billing").partitions
        for each in partition.in_flight
        if partition.topic == "orders"
    ]


@pytest.mark.parametrize("topics", [("refunds",), ()], ids=["subscribe", "unsubscribe"])
async def test_records_of_other_topics_are_released_as_they_arrive(
    broker: EmbeddedBroker, topics: tuple[str, ...]
) -> None:
    values: list[bytes] = []

    async def read(consumer: ShareConsumer[bytes, bytes]) -> None:
        with suppress(NotSubscribedError):
            async for record in consumer:
                record.accept()
                values.append(record.value)

    async with (
        ShareConsumer(
            "orders",
            group_id="billing",
            bootstrap_servers=broker.bootstrap_servers,
            network=broker.network,
            max_wait=5.0,
        ) as consumer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(read, consumer)
        await consumer.assigned()
        await anyio.sleep(5.5)  # a fetch waits at the broker
        consumer.subscribe(*topics)
        broker.produce("orders", [b"order"])
        await until(lambda: [(OffsetState.AVAILABLE, 1)] == orders(broker), 5.0)

        assert [] == values
        tasks.cancel_scope.cancel()


async def test_missing_topic_is_no_problem_any_more_once_it_is_not_subscribed(
    broker: EmbeddedBroker,
) -> None:
    async with ShareConsumer(
        "missing",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
    ) as consumer:
        await until(lambda: consumer.problems)
        (problem,) = consumer.problems
        consumer.subscribe("orders")
        await consumer.assigned()
        await anyio.sleep(5)

        assert "topic missing" in problem
        assert () == consumer.problems
