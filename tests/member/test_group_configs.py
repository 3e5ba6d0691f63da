"""The configs of a group that change while a consumer runs."""

from contextlib import asynccontextmanager

import anyio
import pytest

from sharecons.protocol.codes import Code
from sharecons.testing import OffsetState
from tests.net.embedded import consuming, read_records, requests, running
from tests.waiting import until
from tests.worker.working import Handled, working

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("the requests of a worker in ten minutes"),
]

LIMIT = "share.delivery.count.limit"
RENEWALS = "share.renew.acknowledge.enable"
LOCK = "share.record.lock.duration.ms"
ARCHIVED = "sharecons-records-archived-total"
UNPROCESSED = "sharecons-last-deliveries-unprocessed-total"


def set_config(broker, name, value):
    broker.set_group_config("billing", {name: value})


async def release_next(consumer):
    (record,) = await read_records(consumer, 1)
    record.release()
    await consumer.commit()
    return record.delivery_count


async def test_release_after_the_limit_was_raised_is_not_reported_as_archived(caplog):
    async with running(1) as broker:
        set_config(broker, LIMIT, 2)
        async with consuming(broker, acknowledgement="explicit") as consumer:
            assert 1 == await release_next(consumer)
            set_config(broker, LIMIT, 4)
            assert 2 == await release_next(consumer)
            assert 3 == await release_next(consumer)
            assert 0 == consumer.metrics()[ARCHIVED]
            assert 4 == await release_next(consumer)
            await until(lambda: consumer.metrics()[ARCHIVED] == 1)

    (line,) = [text for text in caplog.messages if "last delivery" in text]
    assert "records=1 positions=orders-0@0 delivery_limit=4" in line


async def test_limit_that_was_lowered_is_followed_within_a_minute(caplog):
    async with running(1) as broker:
        async with consuming(broker, acknowledgement="explicit") as consumer:
            assert 1 == await release_next(consumer)
            set_config(broker, LIMIT, 2)
            await anyio.sleep(61)
            assert 2 == await release_next(consumer)
            await until(lambda: consumer.metrics()[ARCHIVED] == 1)

    assert "delivery_limit=2" in caplog.text


@asynccontextmanager
async def closing_with_a_last_delivery(broker):
    """Consume until a record waits in the consumer for the last time; then close."""
    set_config(broker, LIMIT, 2)
    async with consuming(broker, acknowledgement="explicit") as consumer:
        assert 1 == await release_next(consumer)
        await consumer.poll(timeout=0.0)
        await until(lambda: 2 in delivery_counts(broker))
        await anyio.sleep(0.1)  # the response arrives
        yield consumer


def delivery_counts(broker):
    """Return the delivery counts of the records that are acquired."""
    in_flight = broker.group("billing").partition("orders").in_flight
    return [
        each.delivery_count for each in in_flight if each.state == OffsetState.ACQUIRED
    ]


async def test_close_reads_the_limit_before_it_reports_last_deliveries(caplog):
    async with running(1) as broker:
        async with closing_with_a_last_delivery(broker) as consumer:
            set_config(broker, LIMIT, 5)

        assert 0 == consumer.metrics()[UNPROCESSED]
    assert "possibly on their last delivery" not in caplog.text


async def test_close_without_a_response_reports_last_deliveries_at_the_known_limit(
    caplog,
):
    async with running(1) as broker:
        async with closing_with_a_last_delivery(broker) as consumer:
            broker.faults.on("DescribeConfigs", times=None).stall()
            began = anyio.current_time()

        assert anyio.current_time() - began < 1.0
        assert 1 == consumer.metrics()[UNPROCESSED]
    assert "possibly on their last delivery" in caplog.text


async def test_configs_are_read_once_a_minute():
    async with running(1) as broker:
        async with consuming(broker) as consumer:
            await read_records(consumer, 1)
            began = broker.requests[-1].at
            await anyio.sleep(600)

            assert 9 <= len(requests(broker, "DescribeConfigs", began)) <= 10


async def test_many_releases_on_the_last_delivery_read_the_configs_once_a_second():
    async with running(200) as broker:
        set_config(broker, LIMIT, 2)
        async with consuming(broker, acknowledgement="explicit") as consumer:
            for record in await read_records(consumer, 200):
                record.release()
            await consumer.commit()
            records = await read_records(consumer, 200)
            began = broker.requests[-1].at
            for record in records:
                record.release()
                if record.offset % 20 == 0:
                    await consumer.commit()
            await consumer.commit()
            await until(lambda: consumer.metrics()[ARCHIVED] == 200)

            assert len(requests(broker, "DescribeConfigs", began)) <= 2


async def test_config_that_is_not_readable_keeps_its_value(caplog):
    async with running(1) as broker:
        set_config(broker, LIMIT, 2)
        async with consuming(broker, acknowledgement="explicit") as consumer:
            assert 1 == await release_next(consumer)
            rejected = broker.faults.on("DescribeConfigs", times=None)
            rejected.refuse(Code.GROUP_AUTHORIZATION_FAILED)
            assert 2 == await release_next(consumer)
            await until(lambda: consumer.metrics()[ARCHIVED] == 1)

    assert "delivery_limit=2" in caplog.text


async def test_lock_duration_that_changes_is_followed_by_the_next_fetch():
    async with running(1) as broker:
        async with consuming(broker, acknowledgement="explicit") as consumer:
            await read_records(consumer, 1)
            assert 30.0 == consumer.lock_duration
            set_config(broker, LOCK, 15000)
            broker.produce("orders", [b"2"], partition=0)
            (record,) = await read_records(consumer, 1)

            assert 14 < record.lock_remaining <= 15
            assert 15.0 == consumer.lock_duration


async def test_worker_and_its_consumer_read_the_configs_in_the_same_requests():
    async with running(1) as broker:
        handled = Handled()
        async with working(broker, handled, within=1000):
            await until(lambda: handled.calls)
            began = broker.requests[-1].at
            await anyio.sleep(600)

            assert 9 <= len(requests(broker, "DescribeConfigs", began)) <= 10


async def test_renewals_that_are_switched_on_again_are_resumed(caplog):
    caplog.set_level("INFO", "sharecons")
    async with running(1) as broker:
        broker.set_group_config("billing", {RENEWALS: "false"})
        handled = Handled(lambda record: anyio.sleep(200))
        async with working(broker, handled, within=1000) as worker:
            await until(lambda: handled.calls)
            await until(lambda: "locks are not renewed" in caplog.text)
            set_config(broker, RENEWALS, "true")
            await until(lambda: "locks are renewed again" in caplog.text, within=70)
            await until(lambda: worker.stats.accepted == 1, within=400)
