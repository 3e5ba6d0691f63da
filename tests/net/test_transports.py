"""Each kind of frame transport, over local sockets."""

import math
import socket
import struct

import anyio
import pytest
from anyio.lowlevel import checkpoint

from sharecons.errors import ProtocolError
from tests.net.transports import TRANSPORTS, framed, is_closed, receive_bytes, send_all
from tests.net.waits import other_tasks_have_run

pytestmark = pytest.mark.anyio


protocols_only = pytest.mark.parametrize(
    "kind", [TRANSPORTS["protocol"], TRANSPORTS["protocol, uvloop"]]
)


@pytest.fixture(params=TRANSPORTS.values(), ids=TRANSPORTS.keys())
def kind(request):
    return request.param


@pytest.fixture
def anyio_backend(kind):
    return kind[1]


@pytest.fixture
async def pair(kind):
    """Return a transport, and the non-blocking socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    client.setblocking(False)
    peer.setblocking(False)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as brokers do
    transport = await kind[0](client)
    with peer:
        yield transport, peer
        await transport.aclose()
        # asyncio closes its sockets in the next round.
        await checkpoint()


async def respond(peer, request, response):
    assert request == await receive_bytes(peer, len(request))
    await send_all(peer, framed(response))


async def test_request_and_response(pair):
    transport, peer = pair
    for size in (4, 5000, 300_000):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(respond, peer, b"question", b"a" * size)
            assert b"a" * size == await transport.exchange(b"question", 10)


async def test_response_of_twenty_megabytes(pair):
    transport, peer = pair
    content = bytes(range(256)) * (20 << 12)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"question", content)
        assert content == await transport.exchange(b"question", 30)


async def test_request_of_twenty_megabytes(pair):
    transport, peer = pair
    content = bytes(range(256)) * (20 << 12)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, content, b"response")
        assert b"response" == await transport.exchange(content, 30)


async def test_response_in_chunks(pair):
    transport, peer = pair

    async def serve():
        await receive_bytes(peer, 8)
        for byte in framed(b"in pieces"):
            await send_all(peer, bytes((byte,)))
            await other_tasks_have_run()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        assert b"in pieces" == await transport.exchange(b"question", 10)


async def test_end_of_the_connection_while_waiting_raises(pair):
    transport, peer = pair

    async def serve():
        await receive_bytes(peer, 8)
        await send_all(peer, framed(b"never whole")[:7])
        peer.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        with pytest.raises(anyio.EndOfStream):
            await transport.exchange(b"question", 10)


async def test_end_of_the_connection_before_a_request_raises(pair):
    transport, peer = pair
    peer.close()
    await other_tasks_have_run()

    with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError, OSError)):
        await transport.exchange(b"question", 10)


async def test_invalid_frame_raises(pair):
    transport, peer = pair
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, b"HTTP/1.1 400 Bad Request")
        with pytest.raises(ProtocolError, match="not a Kafka listener"):
            await transport.exchange(b"question", 10)


async def test_unexpected_second_frame_raises(pair):
    transport, peer = pair
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, framed(b"response") + framed(b"another"))
        with pytest.raises(ProtocolError, match="unexpected bytes"):
            await transport.exchange(b"question", 10)


@protocols_only
async def test_bytes_after_a_large_response_end_the_connection(pair):
    transport, peer = pair
    content = b"a" * 300_000

    async def serve():
        await receive_bytes(peer, 8)
        await send_all(peer, framed(content) + b"more")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        assert content == await transport.exchange(b"question", 10)
    with anyio.fail_after(5):
        assert await is_closed(peer)

    with pytest.raises(ProtocolError, match="bytes that were not requested"):
        await transport.exchange(b"question", 10)


async def test_closing_ends_a_waiting_call_and_the_connection(pair):
    transport, peer = pair
    async with anyio.create_task_group() as tasks:

        async def wait():
            with pytest.raises(anyio.ClosedResourceError):
                await transport.exchange(b"question", 10)

        tasks.start_soon(wait)
        await other_tasks_have_run()
        await transport.aclose()
        await receive_bytes(peer, 8)
        with anyio.fail_after(5):
            assert await is_closed(peer)


async def test_calls_on_a_closed_transport_raise(pair):
    transport, _ = pair
    await transport.aclose()
    await transport.aclose()

    with pytest.raises(anyio.ClosedResourceError):
        await transport.exchange(b"question", 10)


@protocols_only
async def test_unrequested_bytes_end_a_protocol_transport(pair):
    transport, peer = pair
    await send_all(peer, framed(b"unrequested"))
    with anyio.fail_after(5):
        assert await is_closed(peer)

    with pytest.raises(ProtocolError, match="bytes that were not requested"):
        await transport.exchange(b"question", 10)


# Connections that end between two requests.


async def ends_idle(transport, end_it):
    """Return the reasons that `idle` reports while the other end runs `end_it`."""
    reasons, reported = [], anyio.Event()

    def lost(reason):
        reasons.append(reason)
        reported.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(transport.idle, reported.wait, lost)
        await other_tasks_have_run()
        await end_it()
        with anyio.fail_after(5):
            await reported.wait()
    return reasons


async def exchanged(transport, peer):
    """Exchange a request and a response, so that all of the transport has run."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, framed(b"response"))
        await transport.exchange(b"question", 10)
    await receive_bytes(peer, 8)


async def test_a_close_between_two_requests_is_reported_immediately(pair):
    transport, peer = pair
    await exchanged(transport, peer)

    async def close():
        peer.close()

    reasons = await ends_idle(transport, close)

    assert [anyio.EndOfStream] == [type(reason) for reason in reasons]


async def test_a_reset_between_two_requests_is_reported_immediately(pair):
    transport, peer = pair
    await exchanged(transport, peer)

    async def reset():
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    (reason,) = await ends_idle(transport, reset)

    assert isinstance(reason, ConnectionResetError | anyio.BrokenResourceError)


async def test_bytes_between_two_requests_are_reported_immediately(pair):
    transport, peer = pair
    await exchanged(transport, peer)

    (reason,) = await ends_idle(
        transport, lambda: send_all(peer, framed(b"unrequested"))
    )

    assert isinstance(reason, ProtocolError)


async def test_a_connection_that_ended_before_is_reported_when_it_idles(pair):
    transport, peer = pair
    await exchanged(transport, peer)
    peer.close()
    await other_tasks_have_run()

    async def nothing():
        pass

    reasons = await ends_idle(transport, nothing)

    assert [anyio.EndOfStream] == [type(reason) for reason in reasons]


async def test_exchange_after_idling_works(pair):
    transport, peer = pair
    for _ in range(50):
        woken = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.idle, woken.wait, pytest.fail)
            await other_tasks_have_run()
            woken.set()
        await exchanged(transport, peer)


async def test_exchange_after_a_cancelled_idle_works(pair):
    transport, peer = pair
    await exchanged(transport, peer)
    with anyio.move_on_after(0.01) as scope:
        await transport.idle(anyio.sleep_forever, pytest.fail)
    await exchanged(transport, peer)

    assert scope.cancelled_caught


async def test_exchange_without_a_response_times_out(pair):
    transport, _ = pair
    with pytest.raises(TimeoutError):
        await transport.exchange(b"question", 0.01)


async def test_timeout_of_an_exchange_does_not_end_the_next_one(pair):
    transport, peer = pair
    for pause, timeout in ((0.0, 0.05), (0.1, 5.0)):

        async def serve(pause=pause):
            await receive_bytes(peer, 8)
            await anyio.sleep(pause)  # real time: until the first timeout has passed
            await send_all(peer, framed(b"response"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            assert b"response" == await transport.exchange(b"question", timeout)


async def test_timeout_of_an_exchange_does_not_end_an_idle_connection(pair):
    transport, peer = pair
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"question", framed(b"response"))
        await transport.exchange(b"question", 0.05)
    with anyio.move_on_after(0.1):  # real time: until the timeout has passed
        await transport.idle(anyio.sleep_forever, pytest.fail)

    await exchanged(transport, peer)


async def test_transport_can_be_closed_after_a_cancelled_exchange(pair):
    transport, peer = pair
    with anyio.move_on_after(0.01) as scope:
        await transport.exchange(b"question", math.inf)
    assert scope.cancelled_caught
    await send_all(peer, framed(b"response"))
    await transport.aclose()

    await receive_bytes(peer, 8)
    with anyio.fail_after(5):
        assert await is_closed(peer)


@pytest.mark.parametrize(
    "kind", [w for n, w in TRANSPORTS.items() if "stream" not in n]
)
async def test_request_is_written_before_other_tasks_run(pair):
    """The application's next steps must not delay the request."""
    transport, peer = pair
    exchange = transport.exchange(b"question", math.inf)
    exchange.send(None)

    assert b"question" == peer.recv(100)
    exchange.close()
