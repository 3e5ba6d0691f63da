"""Consumers of brokers that are far away, in small batches as from many producers."""

import anyio
import pytest

from tests.net.embedded import GROUP, SlowNetwork, consuming, running

pytestmark = pytest.mark.anyio

RECORDS = 500
WARM_UP = 100
"""Records after which the round trip is known."""


@pytest.mark.slow("hundreds of records in virtual time")
@pytest.mark.parametrize(
    ("round_trip", "work"), [(0.05, 0.005), (0.2, 0.005), (0.2, 0.02)]
)
async def test_round_trips_do_not_slow_a_consumer(round_trip, work):
    async with running() as broker:
        for first in range(0, RECORDS, 10):
            broker.produce("orders", [b"%d" % first] * 10)
        network = SlowNetwork(broker, round_trip)
        async with consuming(broker, network=network) as consumer:
            loop = aiter(consumer)
            for number in range(RECORDS):
                await anext(loop)
                if number == WARM_UP:
                    begin = anyio.current_time()
                await anyio.sleep(work)
            seconds = anyio.current_time() - begin

    assert seconds <= 1.03 * work * (RECORDS - WARM_UP)


async def test_slow_application_holds_one_record_of_a_distant_broker():
    async with running() as broker:
        for number in range(30):
            broker.produce("orders", [b"%d" % number])
        async with consuming(broker, network=SlowNetwork(broker, 0.2)) as consumer:
            held = []
            loop = aiter(consumer)
            for _ in range(20):
                await anext(loop)
                await anyio.sleep(2.0)
                held.append(len(broker.group(GROUP).partition("orders", 0).in_flight))

    assert max(held) <= 2
