"""Consumers whose broker returns invalid responses, none, or closes the connection.

Entering raises an error of the library, or the consumer recovers. There are no other
exceptions, no hangs and no request storms.
"""

import anyio
import pytest

from sharecons.errors import ConnectionFailedError
from tests.net.scripted import (
    ACKNOWLEDGE,
    CUT,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    METADATA,
    SILENCE,
    VERSIONS,
    Late,
    Parked,
    ScriptedBroker,
    consuming,
    first,
)
from tests.wire.oracle import encode_entity

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock


FAULTS = {
    "empty": lambda right: b"",
    "noise": lambda right: b"\xff" * 50,
    "zeros": lambda right: b"\x00" * 50,
    "truncated": lambda right: encode_entity(right)[:-2],
    "trailing": lambda right: encode_entity(right) + b"\x00",
    "cut": lambda right: CUT,
    "silence": lambda right: SILENCE,
    "late": lambda right: Late(29.0, right),
}
KEYS = {
    "Metadata": METADATA,
    "FindCoordinator": FIND_COORDINATOR,
    "DescribeConfigs": DESCRIBE_CONFIGS,
    "ShareGroupHeartbeat": HEARTBEAT,
    "ShareFetch": FETCH,
    "ShareAcknowledge": ACKNOWLEDGE,
}
STORM = 25
"""More requests of one kind in a second than this are too many."""

every_key = pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
every_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())


def with_fault(broker, key, fault):
    """An answer that is spoilt; what the right one would do is done all the same."""
    right = broker.answers[key]

    def answer(asked):
        whole = right(asked)
        if isinstance(whole, Parked):
            return Late(0.5, fault(broker.fetched(asked, {}, {})))
        return fault(whole)

    return answer


async def consume_all(broker, consumer, seen):
    """A slow application, so that acknowledgements go by themselves too."""
    async for record in consumer:
        seen.append(record.offset)
        await anyio.sleep(0.3)
        if len(broker.accepted) == len(broker.shares[0].records) - 1:
            break


@every_key
@every_fault
async def test_invalid_response_that_ends_is_recovered(key, fault):
    broker = ScriptedBroker(8)
    right = broker.answers[key]
    broker.answers[key] = first(3, with_fault(broker, key, fault), right)
    seen = []
    async with consuming(broker) as consumer:
        with anyio.move_on_after(400):
            await consume_all(broker, consumer, seen)

    assert set(range(8)) == set(seen)
    # The last one was in hand, and is not accepted by going.
    assert set(broker.accepted) >= set(range(8)) - {seen[-1]}
    assert broker.busiest_second() <= STORM
    assert 0 == broker.open


@every_key
@pytest.mark.parametrize("name", ["noise", "cut", "silence", "late"])
async def test_persistent_invalid_response_causes_no_request_storm(key, name):
    broker = ScriptedBroker(8)
    broker.answers[key] = with_fault(broker, key, FAULTS[name])
    async with consuming(broker) as consumer:
        with anyio.move_on_after(70):
            async for _ in consumer:
                await anyio.sleep(0.3)
        started = anyio.current_time()

    assert anyio.current_time() - started <= 10.1, "closing is bounded"
    assert broker.busiest_second() <= STORM
    assert len(broker.log) < 70 * 10
    assert len(broker.connects) < 70 * 3
    assert 0 == broker.open


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "late"])
async def test_broker_without_versions_cannot_be_entered(name):
    broker = ScriptedBroker(8)
    broker.answers[VERSIONS] = with_fault(broker, VERSIONS, FAULTS[name])
    started = anyio.current_time()

    with pytest.raises(ConnectionFailedError, match="broker:9091"):
        async with consuming(broker, connect_timeout=5.0):
            pass

    assert anyio.current_time() - started <= 5.01
    assert 0 == broker.open


async def test_all_responses_invalid_after_entering():
    broker = ScriptedBroker(8)
    async with consuming(broker) as consumer:
        for key in broker.answers:
            broker.answers[key] = lambda asked: b"\xff" * 20
        broker.cut()
        with anyio.move_on_after(30):
            await anext(aiter(consumer))

    assert broker.busiest_second() <= STORM
    assert 0 == broker.open


@every_key
async def test_connection_that_ends_after_each_request_of_a_type(key):
    """The answer comes, then the connection ends."""
    broker = ScriptedBroker(30)
    right = broker.answers[key]

    def answer_and_hang_up(asked):
        broker.hang_up(asked.stream)
        return right(asked)

    broker.answers[key] = first(5, answer_and_hang_up, right)
    seen = set()
    async with consuming(broker) as consumer:
        with anyio.move_on_after(300):
            async for record in consumer:
                seen.add(record.offset)
                await anyio.sleep(0.05)
                if len(seen) == 30 and len(broker.accepted) >= 29:
                    break

    assert set(range(30)) == seen
    assert broker.busiest_second() <= STORM
    assert 0 == broker.open


async def test_broker_that_restarts_is_used_again():
    broker = ScriptedBroker(10)
    nodes = dict(broker.nodes)
    seen = set()
    async with consuming(broker) as consumer:
        loop = aiter(consumer)
        while len(seen) < 5:
            seen.add((await anext(loop)).offset)
        broker.nodes.clear()
        broker.cut()
        with anyio.move_on_after(60):
            while True:
                seen.add((await anext(loop)).offset)
        gone = len(broker.connects)
        broker.nodes.update(nodes)
        back = anyio.current_time()
        while len(seen) < 10:
            seen.add((await anext(loop)).offset)

        # The pauses between two tries are no longer than a second or two.
        assert anyio.current_time() - back < 5
    assert gone < 60 * 5
    assert broker.busiest_second() <= STORM
