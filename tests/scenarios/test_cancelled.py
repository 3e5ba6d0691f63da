"""A consumer cancelled wherever its application can wait, on a real broker."""

from collections.abc import Callable
from typing import Any, Literal

import anyio
import pytest

from sharecons.net.transport import TcpNetwork, Wire
from sharecons.protocol.values import Endpoint
from tests.kafka_plugin import Admin
from tests.net.interrupts import interruptions
from tests.scenarios.queue import Queue, left_over, take
from tests.scenarios.versions import HAS_VERSION_2

pytestmark = [pytest.mark.anyio, pytest.mark.kafka, pytest.mark.timeout(300)]


class CountedNetwork(TcpNetwork):
    """Plain TCP that knows which of its wires nobody closed."""

    def __init__(self) -> None:
        self.open: set[Wire] = set()

    async def connect(self, endpoint: Endpoint) -> Wire:
        wire = await super().connect(endpoint)
        closing = wire.aclose

        async def aclose() -> None:
            self.open.discard(wire)
            await closing()

        wire.aclose = aclose  # type: ignore[method-assign]
        self.open.add(wire)
        return wire


@pytest.mark.parametrize(
    ("by", "acknowledgement"), [("loop", "implicit"), ("poll", "explicit")]
)
async def test_cancelled_at_each_await_from_entering_to_closing(
    admin: Admin, acknowledgement: Literal["implicit", "explicit"], by: str
) -> None:
    # The most that Kafka allows: each attempt may cost those in hand a delivery. 4.1
    # has no such config, and takes none.
    limit = {"share.delivery.count.limit": "10"} if HAS_VERSION_2 else {}
    queue = Queue(admin, **limit)
    network = CountedNetwork()
    handled: list[bytes] = []
    produced: list[bytes] = []

    async def live() -> None:
        async with queue.consumer(
            acknowledgement=acknowledgement, network=network
        ) as consumer:
            records = aiter(consumer)
            for _ in range(2):
                if by == "loop":
                    record = await anext(records)
                else:
                    (record,) = await consumer.poll(timeout=20, max_records=1)
                handled.append(record.value)
                if acknowledgement == "explicit":
                    record.accept()
            await consumer.commit()

    async def attempt(interrupted: Callable[[Any], Any]) -> None:
        produced.extend([b"%d" % len(produced), b"%d" % (len(produced) + 1)])
        queue.produce(produced[-2:])
        await interrupted(live())
        assert not network.open, "a connection was left behind"

    steps = [step async for step in interruptions(attempt)]
    rest = [record.value for record in await left_over(queue)]

    assert len(steps) >= 8, "entering alone waits that often"
    assert set(produced) - set(handled) <= set(rest), "accepted, but nobody saw it"
    assert set(produced) == {*handled, *rest}


async def test_cancelled_consumer_still_says_what_was_accepted_and_leaves(
    admin: Admin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"0", b"1", b"2"])
    with anyio.CancelScope() as scope:
        async with queue.consumer(acknowledgement="explicit") as consumer:
            record = await anext(aiter(consumer))
            record.accept()
            scope.cancel()
            await anyio.sleep_forever()
    began = anyio.current_time()
    async with queue.consumer(acknowledgement="explicit") as consumer:
        rest = await take(aiter(consumer), 2)

    assert [record.value for record in rest] == [b"1", b"2"]
    assert anyio.current_time() - began < 5, "no lock had to end first"
