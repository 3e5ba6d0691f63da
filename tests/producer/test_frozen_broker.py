"""A broker that accepts connections and responds to nothing, as a paused process."""

import anyio
import pytest

from tests.net.embedded import running
from tests.producer.running import producing

pytestmark = pytest.mark.anyio

LIMIT = 15.0
"""Seconds: one request timeout (10), connecting and backoffs."""


async def test_new_leader_is_not_looked_up_at_a_frozen_broker():
    async with running(brokers=3) as broker:
        async with producing(broker.brokers[1], network=broker.network) as producer:
            await producer.send("orders", b"0")
            broker.faults.hang(1)
            began = anyio.current_time()
            broker.move_leader("orders", 0, to=2)

            await producer.send("orders", b"1")
            assert anyio.current_time() - began < LIMIT
