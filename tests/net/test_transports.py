"""Each kind of frame transport, over local sockets."""

import math
import socket
import struct
from contextlib import suppress

import anyio
import pytest

from sharecons.errors import ProtocolError
from sharecons.net.io.wakeup import FOREVER, FutureWaiter
from tests.net.transports import TRANSPORTS, framed, is_closed, receive_bytes, send_all
from tests.net.waits import other_tasks_have_run, wait_and_end

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


async def receive(transport, got):
    got.append(bytes(await transport.receive()))


async def test_request_and_response(pair):
    transport, peer = pair
    for size in (4, 5000, 300_000):
        await transport.send(b"question")
        assert b"question" == await receive_bytes(peer, 8)
        await send_all(peer, framed(b"a" * size))
        assert b"a" * size == await transport.receive()


async def test_response_of_twenty_megabytes(pair):
    transport, peer = pair
    content, got = bytes(range(256)) * (20 << 12), []
    await transport.send(b"question")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive, transport, got)
        await other_tasks_have_run()
        await send_all(peer, framed(content))

    assert [content] == got


async def test_request_of_twenty_megabytes(pair):
    transport, peer = pair
    content = bytes(range(256)) * (20 << 12)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(transport.send, content)
        assert content == await receive_bytes(peer, len(content))


async def test_response_in_chunks(pair):
    transport, peer = pair
    got = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive, transport, got)
        await other_tasks_have_run()
        for byte in framed(b"in pieces"):
            await send_all(peer, bytes((byte,)))
            await anyio.sleep(0.001)

    assert [b"in pieces"] == got


async def test_end_of_the_connection_while_waiting_raises(pair):
    transport, peer = pair

    async def sock():
        await other_tasks_have_run()
        await send_all(peer, framed(b"never whole")[:7])
        peer.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sock)
        with pytest.raises(anyio.EndOfStream):
            await transport.receive()


async def test_end_of_the_connection_before_a_request_raises(pair):
    transport, peer = pair
    peer.close()
    await other_tasks_have_run()

    async def ask():
        await transport.send(b"question")
        await transport.receive()

    with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError, OSError)):
        await ask()


async def test_invalid_frame_raises(pair):
    transport, peer = pair
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, b"HTTP/1.1 400 Bad Request")
        with pytest.raises(ProtocolError, match="not a Kafka listener"):
            await transport.receive()


async def test_unexpected_second_frame_raises(pair):
    transport, peer = pair
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, framed(b"answer") + framed(b"another"))
        with pytest.raises(ProtocolError, match="unexpected bytes"):
            await transport.receive()


async def test_closing_ends_a_waiting_call_and_the_connection(pair):
    transport, peer = pair
    async with anyio.create_task_group() as tasks:

        async def wait():
            with pytest.raises(anyio.ClosedResourceError):
                await transport.receive()

        tasks.start_soon(wait)
        await other_tasks_have_run()
        await transport.aclose()
        with anyio.fail_after(5):
            assert await is_closed(peer)


async def test_calls_on_a_closed_transport_raise(pair):
    transport, _ = pair
    await transport.aclose()
    await transport.aclose()

    with pytest.raises(anyio.ClosedResourceError):
        await transport.send(b"question")
    with pytest.raises(anyio.ClosedResourceError):
        await transport.receive()


async def test_transport_can_be_closed_after_a_cancelled_receive(pair):
    transport, peer = pair
    with anyio.move_on_after(0.01) as scope:
        await transport.receive()
    await transport.aclose()

    assert scope.cancelled_caught
    with anyio.fail_after(5):
        assert await is_closed(peer)


@protocols_only
async def test_unrequested_bytes_end_a_protocol_transport(pair):
    transport, peer = pair
    await send_all(peer, framed(b"unasked"))
    with anyio.fail_after(5):
        assert await is_closed(peer)

    with pytest.raises(ProtocolError, match="bytes that were not requested"):
        await transport.receive()


# Connections that end between two requests.


async def ends_idle(transport, end_it):
    """Return what `idle` reports when the other end does something meanwhile."""
    reasons, news = [], anyio.Event()

    def lost(reason):
        reasons.append(reason)
        news.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(transport.idle, news.wait, lost)
        await other_tasks_have_run()
        await end_it()
        with anyio.fail_after(5):
            await news.wait()
    return reasons


async def exchanged(transport, peer):
    """One exchange, so that all of the wire has run."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, framed(b"answer"))
        await transport.exchange(b"question", 10, bytes)
    await receive_bytes(peer, 8)


async def test_a_close_between_two_requests_is_reported_at_once(pair):
    transport, peer = pair
    await exchanged(transport, peer)

    async def close():
        peer.close()

    reasons = await ends_idle(transport, close)

    assert [anyio.EndOfStream] == [type(reason) for reason in reasons]


async def test_a_reset_between_two_requests_is_reported_at_once(pair):
    transport, peer = pair
    await exchanged(transport, peer)

    async def reset():
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    (reason,) = await ends_idle(transport, reset)

    assert isinstance(reason, ConnectionResetError | anyio.BrokenResourceError)


async def test_bytes_between_two_requests_are_reported_at_once(pair):
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


# Responses that are read before the caller is woken.


def first_byte(frame):
    return bytes(frame[:1])


async def test_exchange_returns_the_result_of_read(pair):
    transport, peer = pair
    for number in range(3):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send_all, peer, framed(b"%d, and more" % number))
            read = await transport.exchange(
                b"question", 10, lambda frame: bytes(frame[:1])
            )

        assert b"%d" % number == read
        assert b"question" == await receive_bytes(peer, 8)


async def test_read_that_raises_leaves_the_transport_usable(pair):
    transport, peer = pair

    def refuse(frame):
        raise ProtocolError(f"{len(frame)} bytes of nonsense")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, framed(b"nonsense"))
        with pytest.raises(ProtocolError, match="8 bytes of nonsense"):
            await transport.exchange(b"question", 10, refuse)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, framed(b"sense"))
        assert b"sense" == await transport.exchange(b"question", math.inf, bytes)


async def test_exchange_without_a_response_times_out(pair):
    transport, _ = pair
    with pytest.raises(TimeoutError):
        await transport.exchange(b"question", 0.01, bytes)


async def test_response_of_a_cancelled_exchange_is_not_read(pair):
    transport, peer = pair
    read = []
    with anyio.move_on_after(0.01) as scope:
        await transport.exchange(b"question", 10, read.append)
    await send_all(peer, framed(b"answer"))
    # Either the connection has ended or the next call receives the frame.
    with suppress(ProtocolError):
        assert b"answer" == await transport.receive()

    assert scope.cancelled_caught
    assert [] == read


@protocols_only
async def test_protocol_transport_cancelled_after_read_can_be_closed(pair):
    transport, peer = pair
    read = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, peer, framed(b"answer"))
        with anyio.CancelScope() as scope:

            def receive_bytes(frame):
                read.append(bytes(frame))
                tasks.start_soon(cancel)

            async def cancel():
                scope.cancel()

            # The caller is not woken yet: both are in one iteration of the loop.
            await transport.exchange(b"question", 10, receive_bytes)
    await transport.aclose()

    assert [b"answer"] == read
    with anyio.fail_after(5):
        assert b"question" == peer.recv(100)
        assert await is_closed(peer)


@protocols_only
async def test_protocol_transport_reads_before_the_caller_is_woken(pair):
    """Tasks that reading wakes run before the caller, too."""
    transport, peer = pair
    waiter, order = FutureWaiter(), []

    def read(frame):
        order.append("read")
        waiter.wake()

    async def wait():
        await wait_and_end(waiter, FOREVER)
        order.append("woken")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await other_tasks_have_run()
        tasks.start_soon(send_all, peer, framed(b"answer"))
        await transport.exchange(b"question", 10, read)
        order.append("asked")

    assert ["read", "woken", "asked"] == order


@pytest.mark.parametrize(
    "kind", [w for n, w in TRANSPORTS.items() if "stream" not in n]
)
async def test_request_is_written_before_other_tasks_run(pair):
    """The application's next steps must not delay the request."""
    transport, peer = pair
    sending = transport.send(b"question")
    with pytest.raises(StopIteration):
        sending.send(None)

    assert b"question" == peer.recv(100)
