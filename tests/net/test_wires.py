"""What each wire does with bytes and with trouble, over this machine's sockets."""

import math
import socket
import struct
from contextlib import suppress

import anyio
import pytest

from sharecons.errors import ProtocolError
from sharecons.net.io.wakeup import FOREVER, FutureWaiter
from tests.net.ends import WIRES, framed, gone, heard, say
from tests.net.waits import other_tasks_have_run, wait_and_end

pytestmark = pytest.mark.anyio


@pytest.fixture(params=WIRES.values(), ids=WIRES.keys())
def kind(request):
    return request.param


@pytest.fixture
def anyio_backend(kind):
    return kind[1]


async def receive(wire, got):
    got.append(bytes(await wire.receive()))


async def test_a_question_and_its_answer(ends):
    wire, theirs = ends
    for size in (4, 5000, 300_000):
        await wire.send(b"question")
        assert b"question" == await heard(theirs, 8)
        await say(theirs, framed(b"a" * size))
        assert b"a" * size == await wire.receive()


async def test_an_answer_of_twenty_megabytes(ends):
    wire, theirs = ends
    content, got = bytes(range(256)) * (20 << 12), []
    await wire.send(b"question")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive, wire, got)
        await other_tasks_have_run()
        await say(theirs, framed(content))

    assert [content] == got


async def test_a_question_of_twenty_megabytes(ends):
    wire, theirs = ends
    content = bytes(range(256)) * (20 << 12)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.send, content)
        assert content == await heard(theirs, len(content))


async def test_an_answer_in_pieces(ends):
    wire, theirs = ends
    got = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive, wire, got)
        await other_tasks_have_run()
        for byte in framed(b"in pieces"):
            await say(theirs, bytes((byte,)))
            await anyio.sleep(0.001)

    assert [b"in pieces"] == got


async def test_the_end_while_waiting(ends):
    wire, theirs = ends

    async def end():
        await other_tasks_have_run()
        await say(theirs, framed(b"never whole")[:7])
        theirs.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        with pytest.raises(anyio.EndOfStream):
            await wire.receive()


async def test_the_end_before_asking(ends):
    wire, theirs = ends
    theirs.close()
    await other_tasks_have_run()

    async def ask():
        await wire.send(b"question")
        await wire.receive()

    with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError, OSError)):
        await ask()


async def test_garbage(ends):
    wire, theirs = ends
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say, theirs, b"HTTP/1.1 400 Bad Request")
        with pytest.raises(ProtocolError, match="not a Kafka listener"):
            await wire.receive()


async def test_more_than_was_asked_for(ends):
    wire, theirs = ends
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say, theirs, framed(b"answer") + framed(b"another"))
        with pytest.raises(ProtocolError, match="unexpected bytes"):
            await wire.receive()


async def test_closing_tells_who_waits_and_the_other_end(ends):
    wire, theirs = ends
    async with anyio.create_task_group() as tasks:

        async def wait():
            with pytest.raises(anyio.ClosedResourceError):
                await wire.receive()

        tasks.start_soon(wait)
        await other_tasks_have_run()
        await wire.aclose()
        with anyio.fail_after(5):
            assert await gone(theirs)


async def test_a_closed_wire_says_so(ends):
    wire, _ = ends
    await wire.aclose()
    await wire.aclose()

    with pytest.raises(anyio.ClosedResourceError):
        await wire.send(b"question")
    with pytest.raises(anyio.ClosedResourceError):
        await wire.receive()


async def test_cancelled_while_waiting_it_can_be_closed(ends):
    wire, theirs = ends
    with anyio.move_on_after(0.01) as scope:
        await wire.receive()
    await wire.aclose()

    assert scope.cancelled_caught
    with anyio.fail_after(5):
        assert await gone(theirs)


@pytest.mark.parametrize("kind", [WIRES["protocol"], WIRES["protocol, uvloop"]])
async def test_bytes_that_nobody_asked_for_end_a_protocols_wire(ends):
    wire, theirs = ends
    await say(theirs, framed(b"unasked"))
    with anyio.fail_after(5):
        assert await gone(theirs)

    with pytest.raises(ProtocolError, match="bytes that were not requested"):
        await wire.receive()


# What ends a connection between two requests.


async def ends_idle(wire, end_it):
    """Return what `idle` reports when the other end does something meanwhile."""
    reasons, news = [], anyio.Event()

    def lost(reason):
        reasons.append(reason)
        news.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.idle, news.wait, lost)
        await other_tasks_have_run()
        await end_it()
        with anyio.fail_after(5):
            await news.wait()
    return reasons


async def exchanged(wire, theirs):
    """One exchange, so that all of the wire has run."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say, theirs, framed(b"answer"))
        await wire.exchange(b"question", 10, bytes)
    await heard(theirs, 8)


async def test_a_close_between_two_requests_is_reported_at_once(ends):
    wire, theirs = ends
    await exchanged(wire, theirs)

    async def close():
        theirs.close()

    reasons = await ends_idle(wire, close)

    assert [anyio.EndOfStream] == [type(reason) for reason in reasons]


async def test_a_reset_between_two_requests_is_reported_at_once(ends):
    wire, theirs = ends
    await exchanged(wire, theirs)

    async def reset():
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()

    (reason,) = await ends_idle(wire, reset)

    assert isinstance(reason, ConnectionResetError | anyio.BrokenResourceError)


async def test_bytes_between_two_requests_are_reported_at_once(ends):
    wire, theirs = ends
    await exchanged(wire, theirs)

    (reason,) = await ends_idle(wire, lambda: say(theirs, framed(b"unrequested")))

    assert isinstance(reason, ProtocolError)


async def test_a_connection_that_ended_before_is_reported_when_it_idles(ends):
    wire, theirs = ends
    await exchanged(wire, theirs)
    theirs.close()
    await other_tasks_have_run()

    async def nothing():
        pass

    reasons = await ends_idle(wire, nothing)

    assert [anyio.EndOfStream] == [type(reason) for reason in reasons]


async def test_a_wire_that_idled_and_was_woken_exchanges_on(ends):
    wire, theirs = ends
    for _ in range(50):
        woken = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.idle, woken.wait, pytest.fail)
            await other_tasks_have_run()
            woken.set()
        await exchanged(wire, theirs)


async def test_a_wire_whose_idling_was_cancelled_exchanges_on(ends):
    wire, theirs = ends
    await exchanged(wire, theirs)
    with anyio.move_on_after(0.01) as scope:
        await wire.idle(anyio.sleep_forever, pytest.fail)
    await exchanged(wire, theirs)

    assert scope.cancelled_caught


# Answers that are read before who asked is woken.


async def test_an_exchange_gives_what_was_read(ends):
    wire, theirs = ends
    for number in range(3):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say, theirs, framed(b"%d, and more" % number))
            read = await wire.exchange(b"question", 10, lambda frame: bytes(frame[:1]))

        assert b"%d" % number == read
        assert b"question" == await heard(theirs, 8)


async def test_what_reading_raises_is_raised_and_the_wire_stays(ends):
    wire, theirs = ends

    def refuse(frame):
        raise ProtocolError(f"{len(frame)} bytes of nonsense")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say, theirs, framed(b"nonsense"))
        with pytest.raises(ProtocolError, match="8 bytes of nonsense"):
            await wire.exchange(b"question", 10, refuse)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say, theirs, framed(b"sense"))
        assert b"sense" == await wire.exchange(b"question", math.inf, bytes)


async def test_no_answer_in_time(ends):
    wire, _ = ends
    with pytest.raises(TimeoutError):
        await wire.exchange(b"question", 0.01, bytes)


async def test_an_answer_to_nobody_any_more_is_not_read(ends):
    wire, theirs = ends
    read = []
    with anyio.move_on_after(0.01) as scope:
        await wire.exchange(b"question", 10, read.append)
    await say(theirs, framed(b"answer"))
    # Either the connection has ended or the next call receives the frame.
    with suppress(ProtocolError):
        assert b"answer" == await wire.receive()

    assert scope.cancelled_caught
    assert [] == read


@pytest.mark.parametrize("kind", [WIRES["protocol"], WIRES["protocol, uvloop"]])
async def test_cancelled_once_its_answer_is_read_a_protocols_wire_can_be_closed(ends):
    wire, theirs = ends
    read = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say, theirs, framed(b"answer"))
        with anyio.CancelScope() as scope:

            def heard(frame):
                read.append(bytes(frame))
                tasks.start_soon(cancel)

            async def cancel():
                scope.cancel()

            # Nobody is woken yet: both are in the same round of the loop.
            await wire.exchange(b"question", 10, heard)
    await wire.aclose()

    assert [b"answer"] == read
    with anyio.fail_after(5):
        assert b"question" == theirs.recv(100)
        assert await gone(theirs)


@pytest.mark.parametrize("kind", [WIRES["protocol"], WIRES["protocol, uvloop"]])
async def test_a_protocols_wire_reads_before_who_asked_is_woken(ends):
    """Who is woken by what is read runs before, too."""
    wire, theirs = ends
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
        tasks.start_soon(say, theirs, framed(b"answer"))
        await wire.exchange(b"question", 10, read)
        order.append("asked")

    assert ["read", "woken", "asked"] == order


@pytest.mark.parametrize("kind", [w for n, w in WIRES.items() if "stream" not in n])
async def test_a_request_is_written_before_anybody_else_runs(ends):
    """What the application does next must not hold the request up."""
    wire, theirs = ends
    sending = wire.send(b"question")
    with pytest.raises(StopIteration):
        sending.send(None)

    assert b"question" == theirs.recv(100)
