"""Consumers whose broker returns null where Kafka's schema does not allow it."""

from collections import Counter

import anyio
import pytest

from sharecons.errors import ProtocolError
from sharecons.testing import EmbeddedBroker
from tests.consumer.consuming import consuming
from tests.waiting import until

pytestmark = pytest.mark.anyio


RECORDS = 20

# Throttle time, error code, error message, member id, epoch, interval.
HEARTBEAT = bytes.fromhex("00000000 0000 00 00 00000001 000003e8")

NULLS = {
    "heartbeat": ("ShareGroupHeartbeat", {"assignment": {"topic_partitions": None}}),
    "assigned": (
        "ShareGroupHeartbeat",
        {"assignment": {"topic_partitions": [{"partitions": None}]}},
    ),
    "fetch": ("ShareFetch", {"responses": None}),
    "fetched": ("ShareFetch", {"responses": [{"partitions": None}]}),
    "endpoints": ("ShareFetch", {"node_endpoints": None}),
    "acknowledge": ("ShareAcknowledge", {"responses": None}),
    "topics": ("Metadata", {"topics": None}),
    "brokers": ("Metadata", {"brokers": None}),
    "coordinators": ("FindCoordinator", {"coordinators": None}),
}


@pytest.fixture
async def broker():
    async with EmbeddedBroker(topics={"orders": 2}, listen=False) as broker:
        broker.set_group_config("billing", {"share.heartbeat.interval.ms": 1000})
        for partition in range(2):
            values = [b"%d" % number for number in range(partition, RECORDS, 2)]
            broker.produce("orders", values, partition=partition)
        yield broker


async def consume(broker, fault):
    """Consume all records, and wait until the fault has taken all its requests."""
    seen = Counter()
    with anyio.fail_after(30):
        async with consuming(broker) as consumer:
            async for record in consumer:
                seen[record.value] += 1
                if len(seen) == RECORDS - 1:
                    # Send a ShareAcknowledge: later ones are part of a ShareFetch.
                    await consumer.commit()
                if len(seen) == RECORDS:
                    break
            await consumer.commit()
            await until(lambda: fault.is_exhausted)
            assert consumer.connected
    return seen


@pytest.mark.parametrize(("api", "response"), NULLS.values(), ids=NULLS.keys())
async def test_null_array_is_a_malformed_response(broker, api, response):
    fault = broker.faults.on(api, times=2).respond(lambda request, context: response)

    assert RECORDS == len(await consume(broker, fault))


@pytest.mark.parametrize("marker", ["80", "fe", "01"])
async def test_null_topics_of_an_assignment_are_a_malformed_response(broker, marker):
    body = HEARTBEAT + bytes.fromhex(marker) + b"\0\0\0"

    def change(frame):
        changed = frame[4:9] + body
        return len(changed).to_bytes(4, "big") + changed

    fault = broker.faults.on("ShareGroupHeartbeat", times=3, after=1).corrupt(change)

    assert RECORDS == len(await consume(broker, fault))
    assert 3 == fault.hits


async def test_null_array_while_the_consumer_starts_is_raised(broker):
    fault = broker.faults.on("DescribeConfigs")
    fault.respond(lambda request, context: {"results": None})

    with pytest.raises(ProtocolError, match="DescribeConfigs to .* null"):
        async with consuming(broker):
            pass
