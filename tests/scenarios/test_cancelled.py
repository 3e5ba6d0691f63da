"""Consumers that are cancelled at each await, on both brokers."""

import itertools
from collections.abc import Callable
from typing import Any, Literal

import anyio
import pytest

from sharecons.net.io.transport import FrameTransport, TcpNetwork
from sharecons.protocol.partitions import Endpoint
from tests.kafka_plugin import Admin
from tests.net.interrupts import interruptions
from tests.scenarios.queue import Queue, remaining_records, take

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


ATTEMPTS = 3
"""Attempts per group: each can use one of the five deliveries of a record."""


class LeakCheckingNetwork(TcpNetwork):
    """A TCP network that records which connections are still open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: set[FrameTransport] = set()

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
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
async def test_consumer_cancelled_at_any_await_leaks_and_loses_nothing(
    admin: Admin, acknowledgement: Literal["implicit", "explicit"], by: str
) -> None:
    queues: list[Queue] = []
    network = LeakCheckingNetwork()
    handled: list[bytes] = []
    produced: list[bytes] = []
    rest: list[bytes] = []

    async def live(queue: Queue) -> None:
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

    attempts = itertools.count()

    async def attempt(interrupted: Callable[[Any], Any]) -> None:
        if next(attempts) % ATTEMPTS == 0:
            queues.append(Queue(admin))
        produced.extend([b"%d" % len(produced), b"%d" % (len(produced) + 1)])
        queues[-1].produce(produced[-2:])
        await interrupted(live(queues[-1]))
        assert not network.open, "a connection was left behind"

    async def read_rest(queue: Queue) -> None:
        rest.extend([record.value for record in await remaining_records(queue)])

    steps = [step async for step in interruptions(attempt)]
    async with anyio.create_task_group() as tasks:
        for queue in queues:
            tasks.start_soon(read_rest, queue)

    assert len(steps) >= 8, "joining alone has that many awaits"
    assert set(produced) - set(handled) <= set(rest), "accepted without being delivered"
    assert set(produced) == {*handled, *rest}


async def test_cancelled_consumer_sends_acknowledgements_and_leaves_group(
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
    assert anyio.current_time() - began < 5, "no wait for a lock to expire"
