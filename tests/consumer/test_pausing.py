"""Topics that are paused and resumed."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from sharecons import ClosedError, ConfigurationError, Record, ShareConsumer
from sharecons.member.pausable_buffer import PausableBuffer
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.census import entries_of
from tests.consumer.consuming import acquired
from tests.waiting import until

pytestmark = pytest.mark.anyio

LOCK = 15.0
"""Seconds; the group's lock duration."""


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    topics = {"orders": 2, "refunds": 1}
    async with EmbeddedBroker(settings=SETTINGS, listen=False, topics=topics) as broker:
        broker.set_group_config(
            "billing",
            {
                "share.auto.offset.reset": "earliest",
                "share.record.lock.duration.ms": int(LOCK * 1000),
            },
        )
        yield broker


def consuming(broker: EmbeddedBroker, **options: Any) -> ShareConsumer[Any, Any]:
    return ShareConsumer(
        "orders",
        "refunds",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        **options,
    )


async def poll_for(consumer: ShareConsumer[Any, Any], seconds: float) -> list[bytes]:
    """Poll and accept for this long; return the values."""
    return [record.value for record in await poll_for_records(consumer, seconds)]


async def poll_for_records(
    consumer: ShareConsumer[Any, Any], seconds: float
) -> list[Record[Any, Any]]:
    """Poll and accept for this long; return the records."""
    found: list[Record[Any, Any]] = []
    end = anyio.current_time() + seconds
    while (left := end - anyio.current_time()) > 0:
        found += await consumer.poll(timeout=left)
    return found


async def test_paused_topic_is_not_fetched_and_others_are(
    broker: EmbeddedBroker,
) -> None:
    async with consuming(broker) as consumer:
        consumer.pause("orders")
        broker.produce("orders", [b"order"])
        broker.produce("refunds", [b"refund"])

        assert [b"refund"] == await poll_for(consumer, 5.0)
        assert 0 == acquired(broker)
        assert frozenset({"orders"}) == consumer.paused
        assert ("orders", "refunds") == consumer.subscription
        assert {"orders", "refunds"} == {each.topic for each in consumer.assignment}

        consumer.resume("orders")
        assert [b"order"] == await poll_for(consumer, 2.0)


async def test_pause_of_all_topics_keeps_the_member_in_its_group(
    broker: EmbeddedBroker,
) -> None:
    async with consuming(broker) as consumer:
        await consumer.assigned()
        consumer.pause(*consumer.subscription)
        broker.produce("orders", [b"order"])
        await anyio.sleep(50.0)

        assert 1 == len(broker.group("billing").members)
        assert consumer.connected
        consumer.resume(["orders", "refunds"])
        assert [b"order"] == await poll_for(consumer, 2.0)


async def test_waiting_loop_gets_records_after_resume(broker: EmbeddedBroker) -> None:
    values: list[bytes] = []

    async def read(consumer: ShareConsumer[Any, Any]) -> None:
        async for record in consumer:
            record.accept()
            values.append(record.value)

    async with consuming(broker) as consumer, anyio.create_task_group() as tasks:
        consumer.pause("orders", "refunds")
        tasks.start_soon(read, consumer)
        broker.produce("orders", [b"order"])
        await anyio.sleep(5.0)
        assert [] == values
        consumer.resume("orders")
        await until(lambda: [b"order"] == values)
        tasks.cancel_scope.cancel()


async def records_in_flight(consumer: ShareConsumer[Any, Any]) -> list[bytes]:
    """Read one record at a time until several are fetched; return their values."""
    values: list[bytes] = []
    async for record in consumer:
        record.accept()
        values.append(record.value)
        if consumer._source.buffered > 4:
            break
    return values


async def test_buffered_records_wait_for_resume_with_their_locks(
    broker: EmbeddedBroker,
) -> None:
    values = [b"%d" % number for number in range(40)]
    broker.produce("orders", values)
    async with consuming(broker, acknowledgement="explicit") as consumer:
        before = await records_in_flight(consumer)
        consumer.pause("orders")
        assert [] == await poll_for(consumer, 3.0)
        consumer.resume("orders")
        after = []
        while len(after) + len(before) < len(values):
            records = await consumer.poll(timeout=5.0)
            after += records
            for record in records:
                record.accept()

        assert {1} == {record.delivery_count for record in after}
        assert sorted(values) == sorted([*before, *(each.value for each in after)])


@pytest.mark.slow("a minute of heartbeats")
async def test_pauses_beyond_the_lock_cost_no_delivery(broker: EmbeddedBroker) -> None:
    values = [b"%d" % number for number in range(40)]
    broker.produce("orders", values)
    async with consuming(broker) as consumer:
        before = await records_in_flight(consumer)
        for _ in range(3):
            consumer.pause("orders")
            assert [] == await poll_for(consumer, 1.5 * LOCK)
            assert acquired(broker) > 0
            consumer.resume("orders")
        after = await poll_for_records(consumer, 2.0)

        assert sorted(values) == sorted([*before, *(each.value for each in after)])
        assert {1} == {each.delivery_count for each in after}


@pytest.mark.slow("minutes of heartbeats")
async def test_long_pauses_cost_a_record_one_delivery_at_most(
    broker: EmbeddedBroker,
) -> None:
    values = [b"%d" % number for number in range(40)]
    broker.produce("orders", values)
    async with consuming(broker) as consumer:
        before = await records_in_flight(consumer)
        consumer.pause("orders")
        await anyio.sleep(70.0)
        assert 0 == acquired(broker), "other members can have them"
        consumer.resume("orders")
        before += await records_in_flight(consumer)
        consumer.pause("orders")
        await anyio.sleep(70.0)
        assert acquired(broker) > 0, "another release would waste a delivery"
        consumer.resume("orders")
        after = await poll_for_records(consumer, 2.0)

        assert sorted(values) == sorted([*before, *(each.value for each in after)])
        assert max(each.delivery_count for each in after) == 2


async def test_pause_without_renewals_delivers_the_records_again(
    broker: EmbeddedBroker,
) -> None:
    broker.set_group_config("billing", {"share.renew.acknowledge.enable": "false"})
    values = [b"%d" % number for number in range(40)]
    broker.produce("orders", values)
    async with consuming(broker) as consumer:
        before = await records_in_flight(consumer)
        consumer.pause("orders")
        assert [] == await poll_for(consumer, LOCK + 1.0)
        consumer.resume("orders")
        after = await poll_for(consumer, 2.0)

        assert sorted(values) == sorted([*before, *after])


@pytest.mark.parametrize("topics", [("refunds",), ()], ids=["subscribe", "unsubscribe"])
async def test_new_subscription_releases_the_withheld_records_of_other_topics(
    broker: EmbeddedBroker, topics: tuple[str, ...]
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(40)])
    async with consuming(broker) as consumer:
        await records_in_flight(consumer)
        consumer.pause("orders", "refunds")
        await anyio.sleep(1.0)  # a fetch in flight returns more
        assert acquired(broker) > 0
        consumer.subscribe(*topics)

        assert consumer.paused == frozenset(topics)
        await until(lambda: acquired(broker) == 0, 5.0)


async def test_closing_releases_the_withheld_records(broker: EmbeddedBroker) -> None:
    broker.produce("orders", [b"%d" % number for number in range(40)])
    async with consuming(broker) as consumer:
        await records_in_flight(consumer)
        consumer.pause("orders")

    assert 0 == acquired(broker)


async def test_topic_outside_of_the_subscription_is_an_error(
    broker: EmbeddedBroker,
) -> None:
    consumer = consuming(broker)
    assert frozenset() == consumer.paused
    async with consumer:
        with pytest.raises(ConfigurationError, match="'other': it is not in the sub"):
            consumer.pause("orders", "other")
        assert frozenset() == consumer.paused
        consumer.pause("orders")
        with pytest.raises(ConfigurationError, match="cannot resume topic 'order': it"):
            consumer.resume("order")
        assert {"orders"} == consumer.paused
    with pytest.raises(ClosedError):
        consumer.resume("orders")


async def test_leases_that_were_withheld_are_not_kept_after_their_last_record(
    broker: EmbeddedBroker,
) -> None:
    """One topic is paused and resumed, and then another one is paused."""
    async with consuming(broker) as consumer:
        for number in range(3):
            broker.produce("orders", [b"%d" % number] * 4, partition=0)
            assert await consumer.poll(timeout=5.0, max_records=1)
            consumer.pause("orders")
            await anyio.sleep(0.5)
            consumer.resume("orders")
            consumer.pause("refunds")
            assert 3 == len(await poll_for(consumer, 2.0))
            consumer.resume("refunds")

        buffer = consumer._source.buffer
        entries = entries_of(buffer)
        name = f"entries of {PausableBuffer.__module__}.PausableBuffer._live_until"
        assert 0 == entries[name]
        assert name in entries
