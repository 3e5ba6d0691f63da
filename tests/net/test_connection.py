"""One connection: requests, responses, errors and cleanup."""

from functools import partial

import anyio
import pytest

from sharecons.errors import (
    ConnectionFailedError,
    ProtocolError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.net.connection import Connection
from sharecons.protocol.group.messages import FindCoordinatorResponse
from sharecons.protocol.partitions import Endpoint
from sharecons.protocol.share_messages import ShareFetch
from tests.net.interrupts import interruptions
from tests.net.streams import REQUEST, RESPONSE, MemoryNetwork, frame, versions_response

pytestmark = pytest.mark.anyio


HERE = Endpoint("broker", 9092)
COORDINATOR = FindCoordinatorResponse(
    error=0, message=None, node_id=1, endpoint=Endpoint("b1", 9092)
)


async def connected(network, timeout=10.0):
    return await Connection.open(
        network, HERE, client_id="me", software_version="1", timeout=timeout
    )


def responding(*responses):
    """Return a peer that sends its versions, then one of the responses per request."""

    async def serve(peer):
        await peer.send_versions()
        for response in responses:
            await peer.request()
            await peer.stream.send(response)
        await peer.closed_by_client()

    return serve


async def test_versions_are_requested_first_and_kept():
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, responding()))

        assert (1, 2) == connection.served[78]
        assert "broker:9092" == connection.broker
        await connection.aclose()


async def test_request_and_response():
    responses = [frame(number, RESPONSE) for number in (2, 3, 4)]
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, responding(*responses)))

        for _ in responses:
            assert COORDINATOR == await connection.send(REQUEST, 1.0)
        await connection.aclose()


async def test_response_can_arrive_byte_by_byte():
    async def serve(peer):
        await peer.request()
        for byte in versions_response():
            await peer.stream.send(bytes((byte,)))
        await peer.request()
        for byte in frame(2, RESPONSE):
            await peer.stream.send(bytes((byte,)))
        await peer.closed_by_client()

    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, serve))

        assert COORDINATOR == await connection.send(REQUEST, 1.0)
        await connection.aclose()


async def test_response_cut_after_every_byte_raises():
    response = frame(2, RESPONSE)

    async def serve(length, peer):
        await peer.send_versions()
        await peer.request()
        await peer.stream.send(response[:length] or b"\x00")
        await peer.stream.aclose()

    for length in range(len(response)):
        async with anyio.create_task_group() as tasks:
            network = MemoryNetwork(tasks, partial(serve, length))
            connection = await connected(network)

            with pytest.raises(
                ConnectionFailedError,
                match="FindCoordinator to broker:9092: the broker closed",
            ):
                await connection.send(REQUEST, 1.0)
            assert connection.closed
            assert 0 == network.open


async def test_versions_response_cut_after_every_byte_raises():
    async def serve(length, peer):
        await peer.request()
        await peer.stream.send(versions_response()[:length] or b"\x00")
        await peer.stream.aclose()

    for length in range(len(versions_response())):
        async with anyio.create_task_group() as tasks:
            network = MemoryNetwork(tasks, partial(serve, length))

            with pytest.raises(
                ConnectionFailedError, match="broker:9092: the broker closed"
            ):
                await connected(network)
            assert 0 == network.open


GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "tls alert": bytes.fromhex("15030300020250"),
    "length of nothing": bytes(4),
    "negative length": b"\xff" * 4,
    "another request's response": frame(99, RESPONSE),
    "tagged fields in the header": frame(2, RESPONSE, header=b"\x01\x00\x00"),
    "no header": frame(2, b"", header=b""),
    "half a body": frame(2, RESPONSE[:10]),
    "more than a body": frame(2, RESPONSE + b"\x00"),
    "bytes after the frame": frame(2, RESPONSE) + b"\x00",
    "two responses": frame(2, RESPONSE) * 2,
    "body of something else": frame(2, b"\xff" * 40),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_closes_the_connection(garbage):
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, responding(garbage))
        connection = await connected(network)

        with pytest.raises(ProtocolError, match="^FindCoordinator to broker:9092: "):
            await connection.send(REQUEST, 1.0)
        assert connection.closed
        assert 0 == network.open


VERSIONS_GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "length of nothing": bytes(4),
    "another request's response": versions_response(7),
    "an error": frame(1, b"\x00\x1f", header=b""),
    "an unknown error": frame(1, b"\x27\x0f", header=b""),
    "half a body": frame(1, versions_response()[8:20], header=b""),
    "more than a body": frame(1, versions_response()[8:] + b"\x00", header=b""),
    "empty body": frame(1, b"", header=b""),
}


@pytest.mark.parametrize(
    "garbage", VERSIONS_GARBAGE.values(), ids=VERSIONS_GARBAGE.keys()
)
async def test_garbage_in_place_of_versions_leaves_no_connection(garbage):
    async def serve(peer):
        await peer.request()
        await peer.stream.send(garbage)
        await peer.closed_by_client()

    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, serve)

        with pytest.raises(ProtocolError, match="^ApiVersions to broker:9092: "):
            await connected(network)
        assert 0 == network.open
        tasks.cancel_scope.cancel()


async def test_response_timeout_closes_the_connection_and_names_request_and_broker():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, responding(b""))
        connection = await connected(network)
        started = anyio.current_time()

        with pytest.raises(
            RequestTimedOutError, match="FindCoordinator to broker:9092: no response"
        ):
            await connection.send(REQUEST, 2.5)
        assert 2.5 == pytest.approx(anyio.current_time() - started)
        assert connection.closed
        assert 0 == network.open


async def test_versions_timeout_raises():
    async def serve(peer):
        await peer.closed_by_client()

    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, serve)
        started = anyio.current_time()

        with pytest.raises(RequestTimedOutError, match="connecting to broker:9092"):
            await connected(network, timeout=2.5)
        assert 2.5 == pytest.approx(anyio.current_time() - started)
        assert 0 == network.open


async def test_partial_response_times_out():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, responding(frame(2, RESPONSE)[:-1]))
        connection = await connected(network)

        with pytest.raises(RequestTimedOutError):
            await connection.send(REQUEST, 2.5)
        assert 0 == network.open


async def test_refused_connection_raises():
    async with anyio.create_task_group() as tasks:
        with pytest.raises(
            ConnectionFailedError,
            match=r"connecting to broker:9092: .*Connection refused",
        ):
            await connected(MemoryNetwork(tasks, {}))


async def test_cancelled_at_each_await_while_connecting():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, responding())
        done = []

        async def attempt(interrupted):
            connection = await interrupted(connected(network))
            if connection is not None:
                done.append(connection)
                await connection.aclose()
            assert 0 == network.open

        steps = [step async for step in interruptions(attempt)]
        tasks.cancel_scope.cancel()

    assert len(steps) >= 3, "at least: connect, send, receive"
    assert done, "the last attempt was through"


async def test_request_cancelled_at_each_await():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, responding(frame(2, RESPONSE)))
        responses = []

        async def attempt(interrupted):
            connection = await connected(network)
            response = await interrupted(connection.send(REQUEST, 1.0))
            responses.append(response)
            assert connection.closed == (response is None)
            await connection.aclose()
            assert 0 == network.open

        steps = [step async for step in interruptions(attempt)]

    assert len(steps) >= 2, "at least: send, receive"
    assert COORDINATOR == responses[-1]
    assert {None, COORDINATOR} == set(responses)


async def test_request_on_a_closed_connection_raises():
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, responding()))
        await connection.aclose()
        await connection.aclose()

        with pytest.raises(ConnectionFailedError, match="the connection is closed"):
            await connection.send(REQUEST, 1.0)


async def test_request_on_a_connection_closed_by_the_broker_raises():
    async def serve(peer):
        await peer.send_versions()
        await peer.stream.aclose()

    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, serve)
        connection = await connected(network)

        with pytest.raises(
            ConnectionFailedError, match="FindCoordinator to broker:9092"
        ):
            await connection.send(REQUEST, 1.0)
        assert connection.closed


async def test_unsupported_request_is_not_sent_and_leaves_the_connection_open():
    async def serve(peer):
        await peer.send_versions(served={10: (4, 4)})
        await peer.request()
        await peer.stream.send(frame(2, RESPONSE))
        await peer.closed_by_client()

    fetch = ShareFetch(
        group_id="g",
        member_id="m",
        share_session_epoch=0,
        max_wait=0.5,
        min_bytes=1,
        max_bytes=1,
        max_records=1,
        record_limit=False,
        added=frozenset(),
        forgotten=frozenset(),
        acknowledgements={},
    )
    async with anyio.create_task_group() as tasks:
        connection = await connected(MemoryNetwork(tasks, serve))

        with pytest.raises(UnsupportedVersionError):
            await connection.send(fetch, 1.0)
        assert not connection.closed
        assert COORDINATOR == await connection.send(REQUEST, 1.0)
        await connection.aclose()


async def test_client_id_that_cannot_be_sent_leaves_nothing_open():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, responding())

        with pytest.raises(ProtocolError, match="cannot write a request's header"):
            await Connection.open(
                network,
                HERE,
                client_id="x" * 40_000,
                software_version="1",
                timeout=1.0,
            )
        assert 0 == network.open
        tasks.cancel_scope.cancel()


async def test_closing_ends_a_waiting_request():
    async with anyio.create_task_group() as tasks:
        network = MemoryNetwork(tasks, responding(b""))
        connection = await connected(network)

        async def close_soon():
            await anyio.sleep(1)
            await connection.aclose()

        tasks.start_soon(close_soon)
        with pytest.raises(ConnectionFailedError):
            await connection.send(REQUEST, 10.0)
