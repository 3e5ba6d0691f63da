"""A broker that accepts connections and responds to nothing, as a paused process."""

from itertools import pairwise

import anyio
import pytest

from tests.net.embedded import GROUP, consuming, next_record, requests, running

pytestmark = pytest.mark.anyio

LIMIT = 40.0
"""Seconds: a request timeout (30), the wait of a fetch or the heartbeat interval (5),
connecting and backoffs. Below the session timeout of 45 s."""


async def test_broker_with_overdue_responses_serves_no_look_ups():
    """Broker 1 is the leader, the coordinator, and the only bootstrap address."""
    async with running(1, brokers=3) as broker:
        async with consuming(broker) as consumer:
            assert (await next_record(consumer)).offset == 0
            broker.faults.hang(1)
            began = anyio.current_time()
            broker.move_leader("orders", 0, to=2)
            broker.move_coordinator(GROUP, to=3)
            broker.produce("orders", [b"1"])

            assert await next_record(consumer, within=200) is not None
            assert anyio.current_time() - began < LIMIT
            await anyio.sleep(LIMIT)
            times = [each.at for each in requests(broker, "ShareGroupHeartbeat")]
            assert max(later - at for at, later in pairwise(times)) < LIMIT
