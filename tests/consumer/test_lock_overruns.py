"""Reports of a consumer when processing takes longer than the lock."""

import logging
import re

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from tests.consumer.consuming import consuming
from tests.scenarios.interrupted_network import InterruptedNetwork
from tests.waiting import until

pytestmark = pytest.mark.anyio


HINT = "s, the lock lasts 1 s: call renew() or raise share.record.lock.duration.ms"


@pytest.fixture
async def broker():
    lowest = {"group.share.min.record.lock.duration.ms": 1000}
    async with EmbeddedBroker(settings=lowest, listen=False) as broker:
        broker.create_topic("orders")
        broker.set_group_config("billing", {"share.record.lock.duration.ms": 1000})
        yield broker


@pytest.fixture
def warnings(caplog):
    caplog.set_level(logging.WARNING, "sharecons")
    return lambda: [each.getMessage() for each in caplog.records]


def has_demand(request, _):
    return request.max_records > 0


def processing_seconds(text):
    """Return how long processing took, according to a message."""
    found = re.search(r"processing took ([\d.]+) s", text)
    assert found, text
    return float(found[1])


async def test_late_acknowledgement_is_explained(broker, warnings, caplog):
    broker.produce("orders", [b"0"])
    results = []
    async with consuming(
        broker, acknowledgement="explicit", on_acknowledged=results.extend
    ) as consumer:
        record = await anext(aiter(consumer))
        consumer.unsubscribe()  # so that it does not acquire the record again
        await anyio.sleep(2.2)
        record.accept()
        await until(lambda: results, within=10)
        expected = {"group": consumer.group_id, "member": consumer.member_id}

    (result,) = results
    assert result.error.name == "INVALID_RECORD_STATE"
    assert processing_seconds(result.error.message) >= 2.2
    assert HINT in result.error.message
    (warning,) = warnings()
    assert "acknowledgements failed" in warning
    assert "positions=orders-0@0 " in warning
    assert HINT in warning
    assert "AcknowledgeResult(" not in warning
    assert "AcknowledgeFailure(" not in warning
    (line,) = caplog.records
    assert line.name.startswith("sharecons.member")
    assert expected.items() <= line.fields.items()


async def test_lost_locks_and_failed_acknowledgements_are_logged_with_positions(
    broker, warnings
):
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 30000})
    broker.create_topic("refunds")
    broker.produce("orders", [b"%d" % n for n in range(5)])
    broker.produce("refunds", [b"0", b"1"])
    async with consuming(broker, acknowledgement="explicit") as consumer:
        consumer.subscribe("orders", "refunds")
        records = []
        while len(records) < 7:
            records += await consumer.poll(timeout=10.0)
        by_offset = {(each.topic, each.offset): each for each in records}
        broker.faults.on("ShareAcknowledge", times=None).cut()
        broker.faults.on("ShareFetch", times=None).cut()
        for offset in (1, 2):
            by_offset["orders", offset].accept()
        by_offset["orders", 4].reject()
        await until(lambda: len(warnings()) == 2, within=10)

    (lost,) = [text for text in warnings() if text.startswith("locks lost")]
    assert "records=7 positions='orders-0@0-4, refunds-0@0-1'" in lost
    (failed,) = [text for text in warnings() if text.startswith("acknowledg")]
    assert "records=3 positions='orders-0@1-2, orders-0@4' error=NETWORK_EXC" in failed


async def test_slow_handler_in_implicit_mode_is_explained(broker, warnings):
    broker.produce("orders", [b"0"])
    async with consuming(broker) as consumer:
        with anyio.fail_after(20):
            async for _ in consumer:
                if warnings():
                    break
                await anyio.sleep(1.4)

    assert "acknowledgements failed" in warnings()[0]
    assert processing_seconds(warnings()[0]) >= 1.4
    assert HINT in warnings()[0]


@pytest.mark.slow("minutes of virtual time")
async def test_records_that_arrive_after_their_locks_have_a_line_a_minute(
    broker, warnings
):
    broker.set_group_config("billing", {"share.delivery.count.limit": 10})
    network = InterruptedNetwork(broker.network)
    network.on_records = lambda: anyio.sleep(1.3)
    async with consuming(broker, network=network) as consumer:
        for _ in range(2):
            broker.produce("orders", [b"0"])
            assert [] == await consumer.poll(timeout=70.0)

    # Two records with ten deliveries each; the last line is written at the end.
    ended = [text for text in warnings() if text.startswith("acquisition locks ended")]
    counts = [int(re.search(r"records=(\d+)", text)[1]) for text in ended]
    assert [1, 10, 9] == counts
    # A release that comes too late is no failure.
    assert not [text for text in warnings() if "acknowledgements failed" in text]
    assert "topic=orders partition=0" in ended[0]


async def test_records_of_a_late_response_are_released_if_the_broker_has_locked_them(
    broker, warnings
):
    # Brokers that were paused serve a request late: its records are locked then.
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 5000})
    broker.produce("orders", [b"0"])
    results = []
    async with consuming(broker, on_acknowledged=results.extend) as consumer:
        broker.faults.on("ShareFetch", where=has_demand).stall(6.0)
        with anyio.fail_after(9):
            record = await anext(aiter(consumer))

    assert (b"0", 2) == (record.value, record.delivery_count)
    assert all(result.error is None for result in results)
    (line,) = (each for each in warnings() if "unreachable" not in each)
    assert "acquisition locks ended before the records were delivered" in line
    assert "records=1 topic=orders partition=0" in line
    assert "the response took 6 s, the lock lasts 5 s" in line
