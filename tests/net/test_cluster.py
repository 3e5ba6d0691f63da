"""Finding a broker that answers, and links that come back."""

from functools import partial

import anyio
import pytest

from sharecons.errors import (
    ConnectionFailedError,
    ProtocolError,
    RequestTimedOutError,
)
from sharecons.net.cluster import Cluster, Link
from sharecons.protocol.values import Endpoint, FindCoordinator
from tests.net.interrupts import interruptions
from tests.net.streams import MemoryNetwork, Peer, frame
from tests.wire.oracle import spelt

pytestmark = pytest.mark.anyio

QUESTION = FindCoordinator(group_id="billing")
ANSWER = spelt("00000000 02 08 'billing' 00000001 03 'b1' 00002384 0000 00 00 00")


async def answering(peer):
    await peer.answer_versions()
    for number in range(2, 1000):
        await peer.request()
        await peer.stream.send(frame(number, ANSWER))


async def silent(peer):
    await peer.gone()


async def closing(peer):
    await peer.request()


async def http(peer):
    await peer.request()
    await peer.stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def cluster_of(network, *hosts):
    endpoints = [Endpoint(host, 9092) for host in hosts]
    return Cluster(endpoints, network, client_id="me", software_version="1")


# Several addresses.


async def test_first_broker_that_answers():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": closing, "c": answering, "d": answering})

        connection = await cluster_of(network, "a", "b", "c", "d").connect_any()

        assert "c:9092" == connection.broker
        assert ["a", "b", "c"] == [endpoint.host for endpoint in network.connects]
        assert 1 == network.open
        await connection.aclose()


async def test_known_brokers_are_tried_before_bootstrap_and_none_twice():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {})
        known = [Endpoint("b", 9092), Endpoint("x", 9092)]

        with pytest.raises(ConnectionFailedError):
            await cluster_of(network, "a", "b").connect_any(known)
        assert ["b", "x", "a"] == [endpoint.host for endpoint in network.connects]


async def test_error_names_each_address_and_what_became_of_it():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": closing, "c": http, "d": silent})

        with pytest.raises(ConnectionFailedError) as caught:
            await cluster_of(network, "a", "b", "c", "d").connect_any(timeout=8)

        message = str(caught.value)
        assert "no broker answered within 8 s" in message
        parts = message.split("tried: ")[1].split("; ")
        expected = [
            ("a:9092", "Connection refused"),
            ("b:9092", "closed the connection"),
            ("c:9092", "no Kafka listener"),
            ("d:9092", "no answer in time"),
        ]
        assert len(expected) == len(parts)
        for part, (address, reason) in zip(parts, expected, strict=True):
            assert address in part
            assert reason in part
        assert 0 == network.open


@pytest.mark.parametrize("hosts", ["s", "st", "sa", "as", "stuvw"])
async def test_silent_brokers_take_no_longer_than_the_timeout(hosts):
    serve = {"a": answering, **dict.fromkeys("stuvw", silent)}
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, serve)
        started = anyio.current_time()

        try:
            connection = await cluster_of(network, *hosts).connect_any(timeout=5)
        except ConnectionFailedError:
            assert "a" not in hosts
        else:
            assert "a:9092" == connection.broker
            await connection.aclose()

        assert anyio.current_time() - started < 5.001
        assert 0 == network.open


async def test_cancelled_at_each_await_while_looking_for_a_broker():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, {"b": http, "c": answering})

        async def attempt(interrupted):
            cluster = cluster_of(network, "a", "b", "c")
            connection = await interrupted(cluster.connect_any())
            if connection is not None:
                await connection.aclose()
            assert 0 == network.open

        steps = [step async for step in interruptions(attempt)]

    assert len(steps) >= 7


# Links.


class Lines:
    """What a link connects by; each connection is served by the next function."""

    def __init__(self, tasks, *serves):
        self._serves = list(serves)
        self.network = MemoryNetwork(tasks, self._next)
        self._cluster = cluster_of(self.network, "a")

    async def _next(self, peer: Peer):
        await self._serves.pop(0)(peer)

    async def connect(self):
        return await self._cluster.connect_any()


async def answer(count, peer):
    await peer.answer_versions()
    for number in range(2, 2 + count):
        await peer.request()
        await peer.stream.send(frame(number, ANSWER))


async def test_link_connects_when_it_is_asked_and_once():
    async with anyio.create_task_group() as tasks:
        lines = Lines(tasks, answering)
        link = Link(lines.connect)
        assert [] == lines.network.connects

        for _ in range(3):
            assert 1 == (await link.ask(QUESTION, 1.0)).node_id

        assert 1 == len(lines.network.connects)
        await link.aclose()
        assert 0 == lines.network.open


async def test_link_connects_anew_after_a_loss():
    async with anyio.create_task_group() as tasks:
        lines = Lines(tasks, partial(answer, 1), answering)
        link = Link(lines.connect)
        await link.ask(QUESTION, 1.0)

        with pytest.raises(ConnectionFailedError):
            await link.ask(QUESTION, 1.0)
        assert 1 == (await link.ask(QUESTION, 1.0)).node_id

        assert 2 == len(lines.network.connects)
        assert 1 == lines.network.open
        await link.aclose()


async def test_link_connects_anew_after_an_answer_that_did_not_come():
    async def silent_after_versions(peer):
        await peer.answer_versions()
        await peer.gone()

    async with anyio.create_task_group() as tasks:
        lines = Lines(tasks, silent_after_versions, answering)
        link = Link(lines.connect)

        with pytest.raises(RequestTimedOutError):
            await link.ask(QUESTION, 1.0)
        assert 1 == (await link.ask(QUESTION, 1.0)).node_id
        await link.aclose()


async def test_link_connects_anew_after_connecting_failed():
    async with anyio.create_task_group() as tasks:
        lines = Lines(tasks, http, answering)
        link = Link(lines.connect)

        with pytest.raises(ConnectionFailedError):
            await link.ask(QUESTION, 1.0)
        assert 1 == (await link.ask(QUESTION, 1.0)).node_id
        await link.aclose()


async def test_link_connects_anew_after_a_cancelled_asking():
    async with anyio.create_task_group() as tasks:
        lines = Lines(tasks, *[answering] * 100)
        link = Link(lines.connect)

        async def attempt(interrupted):
            await interrupted(link.ask(QUESTION, 1.0))
            assert 1 == (await link.ask(QUESTION, 1.0)).node_id
            assert 1 == lines.network.open

        assert [step async for step in interruptions(attempt)]
        await link.aclose()


async def test_link_lets_its_askers_take_turns():
    under_way, most, asked = 0, 0, 0

    async def serve(peer):
        nonlocal under_way, most, asked
        await peer.answer_versions()
        for number in range(2, 7):
            await peer.request()
            under_way, asked = under_way + 1, asked + 1
            most = max(most, under_way)
            await anyio.sleep(0.1)
            # A second request that came early would be found here.
            assert not peer._received
            under_way -= 1
            await peer.stream.send(frame(number, ANSWER))

    async with anyio.create_task_group() as tasks:
        lines = Lines(tasks, serve)
        link = Link(lines.connect)
        async with anyio.create_task_group() as askers:
            for _ in range(5):
                askers.start_soon(link.ask, QUESTION, 1.0)

        assert (1, 5, 1) == (most, asked, len(lines.network.connects))
        await link.aclose()


async def test_link_starts_with_a_connection_that_it_is_given():
    async with anyio.create_task_group() as tasks:
        lines = Lines(tasks, answering)
        connection = await lines.connect()
        link = Link(lines.connect)
        link.use(connection)

        await link.ask(QUESTION, 1.0)

        assert 1 == len(lines.network.connects)
        await link.aclose()
        assert connection.closed


async def test_unused_link_closes():
    async with anyio.create_task_group() as tasks:
        await Link(Lines(tasks).connect).aclose()


async def test_error_of_the_protocol_is_one_of_the_connection():
    """Whoever catches that a connection failed also catches garbage."""
    assert issubclass(ProtocolError, ConnectionFailedError)
    assert issubclass(RequestTimedOutError, ConnectionFailedError)
