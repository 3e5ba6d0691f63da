"""`release(after=…)` of a consumer, in virtual time."""

import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import pytest

from sharecons import (
    AcknowledgeResult,
    AcknowledgeType,
    DeserializationError,
    LockLostError,
    Record,
    ShareConsumer,
)
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.consumer.consuming import acquired
from tests.killable_network import KillableNetwork

pytestmark = pytest.mark.anyio

ACCEPT, RELEASE, _, RENEW = AcknowledgeType

LOCK: Final = 15.0
"""Seconds; the group's lock duration."""


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    topics = {"orders": 1, "refunds": 1}
    async with EmbeddedBroker(settings=SETTINGS, listen=False, topics=topics) as broker:
        broker.set_group_config(
            "billing",
            {
                "share.auto.offset.reset": "earliest",
                "share.record.lock.duration.ms": int(LOCK * 1000),
            },
        )
        yield broker


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.WARNING, "sharecons")
    return lambda: [each.getMessage() for each in caplog.records]


def consuming(broker: EmbeddedBroker, **options: Any) -> ShareConsumer[Any, Any]:
    return ShareConsumer(
        *options.pop("topics", ["orders"]),
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        **{
            "network": broker.network,
            "acknowledgement": "explicit",
            "max_wait": 5.0,  # few requests
            **options,
        },
    )


async def receive(
    consumer: ShareConsumer[Any, Any], within: float = 60.0
) -> Record[Any, Any]:
    with anyio.fail_after(within):
        return await anext(aiter(consumer))


async def test_released_record_comes_again_after_the_delay(
    broker: EmbeddedBroker, warnings: Any
) -> None:
    broker.produce("orders", [b"0"])
    results: list[AcknowledgeResult] = []
    async with consuming(broker, on_acknowledged=results.extend) as consumer:
        record = await receive(consumer)
        start = anyio.current_time()
        record.release(after=40.0)
        assert not record.held
        await anyio.sleep(39.0)
        assert 1 == acquired(broker)
        assert 1 == consumer.metrics()["sharecons-records-held"]
        assert {"RENEW"} == {result.type.name for result in results}
        again = await receive(consumer)
        waited = anyio.current_time() - start
        again.accept()
        await consumer.commit()

    assert (0, 2) == (again.offset, again.delivery_count)
    assert 40.0 <= waited <= 40.2
    assert [RELEASE, ACCEPT] == [result.type for result in results][-2:]
    assert {None} == {result.error for result in results}
    assert [] == warnings()


async def test_batch_is_released_after_the_delay_except_acknowledged_records(
    broker: EmbeddedBroker,
) -> None:
    broker.produce("orders", [b"%d" % i for i in range(5)])
    async with consuming(broker) as consumer:
        delayed: list[int] = []
        batches = consumer.batches()
        with anyio.fail_after(60):
            while len(delayed) < 4:
                batch = await anext(batches)
                if batch[0].offset == 0:
                    batch[0].accept()
                delayed += [record.offset for record in batch if record.held]
                batch.release(after=20.0)
                assert not batch.held
            start = anyio.current_time()
            again = await anext(batches)

        assert 19.0 <= anyio.current_time() - start <= 21.0
        assert [1, 2, 3, 4] == delayed
        assert 1 == again[0].offset


async def test_pausing_and_leaving_the_loop_keep_the_delay(
    broker: EmbeddedBroker,
) -> None:
    broker.produce("orders", [b"0"])
    async with consuming(broker) as consumer:
        start = 0.0
        async for record in consumer:
            record.release(after=40.0)
            start = anyio.current_time()
            break
        consumer.pause("orders")
        await anyio.sleep(39.0)
        assert 1 == acquired(broker)
        await anyio.sleep(2.0)
        assert 0 == acquired(broker)
        consumer.resume("orders")

        assert 2 == (await receive(consumer)).delivery_count
        assert anyio.current_time() - start < 45.0


@pytest.mark.parametrize("topics", [(), ("refunds",)])
async def test_other_subscription_keeps_the_delay(
    broker: EmbeddedBroker, topics: tuple[str, ...]
) -> None:
    broker.produce("orders", [b"0"])
    async with consuming(broker) as consumer:
        (await receive(consumer)).release(after=40.0)
        consumer.subscribe(*topics)
        await anyio.sleep(39.0)
        assert 1 == acquired(broker)
        await anyio.sleep(2.0)
        assert 0 == acquired(broker)
        consumer.subscribe("orders")

        assert 2 == (await receive(consumer)).delivery_count


@pytest.mark.slow("a hundred delays of a minute")
async def test_lost_connection_ends_the_delay_with_one_warning(
    broker: EmbeddedBroker, warnings: Any
) -> None:
    broker.produce("orders", [b"%d" % i for i in range(100)])
    network = KillableNetwork(broker.network)
    results: list[AcknowledgeResult] = []
    async with consuming(
        broker, network=network, on_acknowledged=results.extend
    ) as consumer:
        records: list[Record[Any, Any]] = []
        while len(records) < 100:
            records += await consumer.poll(timeout=10.0)
        for record in records:
            record.release(after=50.0)
        await anyio.sleep(1.0)
        await network.close()
        again = await receive(consumer, within=10.0)
        with pytest.raises(LockLostError):
            records[5].accept()
        await anyio.sleep(60.0)

    assert 2 == again.delivery_count
    (failed,) = {(r.type, r.error.name) for r in results if r.error}
    assert (RELEASE, "NETWORK_EXCEPTION") == failed
    assert 1 == sum("acknowledgements failed" in text for text in warnings())
    assert "records=100" in next(t for t in warnings() if "failed" in t)


async def test_release_on_the_last_delivery_archives_with_a_warning(
    broker: EmbeddedBroker, warnings: Any
) -> None:
    broker.set_group_config("billing", {"share.delivery.count.limit": 2})
    broker.produce("orders", [b"0"])
    async with consuming(broker) as consumer:
        for _ in range(2):
            assert [] == warnings()
            (await receive(consumer)).release(after=10.0)
        assert [] == await consumer.poll(timeout=30.0)
        assert 1 == consumer.metrics()["sharecons-records-archived-total"]
    (warning,) = warnings()
    assert "archived" in warning


async def test_group_without_renewals_releases_early_with_one_warning(
    broker: EmbeddedBroker, warnings: Any
) -> None:
    broker.set_group_config("billing", {"share.renew.acknowledge.enable": "false"})
    broker.produce("orders", [b"%d" % i for i in range(20)])
    results: list[AcknowledgeResult] = []
    async with consuming(broker, on_acknowledged=results.extend) as consumer:
        records: list[Record[Any, Any]] = []
        while len(records) < 20:
            records += await consumer.poll(timeout=10.0)
        start = anyio.current_time()
        for record in records:
            record.release(after=40.0)
        again = await receive(consumer)

    assert LOCK - 3.0 < anyio.current_time() - start < LOCK
    assert 2 == again.delivery_count
    assert {(RELEASE, None)} == {(r.type, r.error) for r in results}
    (warning,) = warnings()
    assert "before their delay has passed" in warning


async def test_implicit_loop_does_not_accept_a_delayed_record(
    broker: EmbeddedBroker,
) -> None:
    broker.produce("orders", [b"0", b"1"])
    seen = []
    async with consuming(broker, acknowledgement="implicit") as consumer:
        start = anyio.current_time()
        async for record in consumer:
            seen.append((record.offset, record.delivery_count))
            if seen == [(0, 1)]:
                record.release(after=30.0)
            if len(seen) == 3:
                break

    assert [(0, 1), (1, 1), (0, 2)] == seen
    assert anyio.current_time() - start >= 30.0


async def test_record_that_cannot_be_deserialized_is_released_after_the_delay(
    broker: EmbeddedBroker,
) -> None:
    broker.produce("orders", [b"x"])
    async with consuming(broker, value_deserializer=int) as consumer:
        with pytest.raises(DeserializationError) as caught:
            await receive(consumer)
        caught.value.record.release(after=25.0)
        start = anyio.current_time()

        with pytest.raises(DeserializationError) as caught:
            await receive(consumer)

    assert 25.0 <= anyio.current_time() - start <= 26.0
    assert 2 == caught.value.record.delivery_count


async def test_cancelled_handler_keeps_the_delay(broker: EmbeddedBroker) -> None:
    broker.produce("orders", [b"0"])
    async with consuming(broker) as consumer:
        with anyio.move_on_after(1.0):
            (await receive(consumer)).release(after=30.0)
            await anyio.sleep(100.0)
        start = anyio.current_time()
        await receive(consumer)

        assert 28.0 <= anyio.current_time() - start <= 31.0


async def test_idle_consumer_with_a_delayed_record_sends_few_requests(
    broker: EmbeddedBroker,
) -> None:
    broker.produce("orders", [b"0"])
    async with consuming(broker) as consumer:
        (await receive(consumer)).release(after=60.0)
        await consumer.poll(timeout=5.0)
        before = consumer.metrics()["fetch-total"]
        await consumer.poll(timeout=20.0)

        assert consumer.metrics()["fetch-total"] - before <= 20.0 / (LOCK / 4) + 5


async def test_another_leader_ends_the_delay_with_few_warnings(warnings: Any) -> None:
    async with EmbeddedBroker(
        brokers=2, settings=SETTINGS, listen=False, topics={"orders": 1}
    ) as broker:
        broker.set_group_config(
            "billing",
            {
                "share.auto.offset.reset": "earliest",
                "share.record.lock.duration.ms": int(LOCK * 1000),
            },
        )
        broker.produce("orders", [b"%d" % i for i in range(20)])
        old = broker.leader("orders", 0)
        results: list[AcknowledgeResult] = []
        async with consuming(broker, on_acknowledged=results.extend) as consumer:
            records: list[Record[Any, Any]] = []
            while len(records) < 20:
                records += await consumer.poll(timeout=10.0)
            for record in records:
                record.release(after=60.0)
            broker.move_leader("orders", 0, to=3 - old)
            start = anyio.current_time()
            again = await receive(consumer)
            waited = anyio.current_time() - start
            await anyio.sleep(2 * LOCK)

    assert 0 == again.offset
    assert waited < 5.0
    assert {RENEW, RELEASE} == {result.type for result in results if result.error}
    assert (
        [
            "acknowledgements failed",
            "acknowledgements rejected",  # once, after 3 s
        ]
        == [" ".join(text.split()[:2]) for text in warnings()]
    )
