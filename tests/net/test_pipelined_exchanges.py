"""Frames that an asyncio transport sends by itself."""

import asyncio

import anyio
import pytest

from sharecons.errors import ProtocolError
from sharecons.net.io.pipeline import Deferred, NextFrame
from sharecons.net.io.wakeup import FOREVER, FutureWaiter
from tests.net.transports import TRANSPORTS, framed, is_closed, receive_bytes, send_all
from tests.net.waits import buffered, other_tasks_have_run, wait_and_end

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["protocol", "protocol, uvloop"])
def kind(request):
    return TRANSPORTS[request.param]


@pytest.fixture
def anyio_backend(kind):
    return kind[1]


class Reader:
    """A `read` function that returns `results`, and logs calls in their order."""

    def __init__(self, *results):
        self.results = list(results)
        self.order = []

    def __call__(self, respond):
        self.order.append(bytes(respond))
        return self.results.pop(0)

    def note(self, entry, results=None):
        def callback():
            self.order.append(entry)
            return results

        return callback


async def respond(sock, *responses):
    for each in responses:
        await receive_bytes(sock, len(b"question"))
        await send_all(sock, framed(each))


async def test_transport_exchanges_next_frames_itself(pair):
    transport, peer = pair
    next_frame = NextFrame(b"question", 10)
    read = Reader(next_frame, next_frame, "the end")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"no 1", b"no 2", b"no 3")

        assert "the end" == await transport.exchange(b"question", 10, read)
    assert [b"no 1", b"no 2", b"no 3"] == read.order


async def test_next_frame_is_sent_before_woken_tasks_run(pair):
    transport, peer = pair
    waiter, sent = FutureWaiter(), []

    def read(_):
        waiter.wake()
        return NextFrame(b"onward", 10)

    async def work():
        await wait_and_end(waiter, FOREVER)
        sent.append(peer.recv(100))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        with anyio.move_on_after(5):
            tasks.start_soon(respond, peer, b"answer")
            tasks.start_soon(transport.exchange, b"question", 10, read)
            while not sent:
                await asyncio.sleep(0)
        tasks.cancel_scope.cancel()

    assert [b"onward"] == sent


async def test_deferred_runs_after_the_woken_tasks(pair):
    transport, peer = pair
    waiter = FutureWaiter()
    read = Reader("the end")

    async def work():
        await wait_and_end(waiter, FOREVER)
        read.order.append("work")

    def first(frame):
        waiter.wake()
        read.results.insert(0, Deferred(read.note("look", NextFrame(b"question", 10))))
        return read(frame)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        tasks.start_soon(respond, peer, b"no 1", b"no 2")
        await other_tasks_have_run()
        responses = iter([first, read])
        result = await transport.exchange(b"question", 10, lambda f: next(responses)(f))

    assert "the end" == result
    assert [b"no 1", "work", "look", b"no 2"] == read.order


async def test_deferred_that_raises_raises_in_the_exchange(pair):
    transport, peer = pair

    def refuse():
        raise ProtocolError("nonsense")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"no 1")
        with pytest.raises(ProtocolError, match="nonsense"):
            await transport.exchange(b"question", 10, lambda _: Deferred(refuse))


async def test_deferred_of_a_cancelled_exchange_is_not_called(pair):
    transport, peer = pair
    calls = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"no 1")
        with anyio.CancelScope() as scope:

            def read(_):
                scope.cancel()
                return Deferred(lambda: calls.append(True))

            await transport.exchange(b"question", 10, read)
        await other_tasks_have_run()

    assert scope.cancelled_caught
    assert [] == calls


async def test_next_frame_of_a_cancelled_exchange_is_not_sent(pair):
    """A task that the response resumed may have cancelled the exchange."""
    transport, peer = pair
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"no 1")
        with anyio.CancelScope() as scope:

            def read(_):
                scope.cancel()
                return NextFrame(b"onward", 10)

            await transport.exchange(b"question", 10, read)

    assert scope.cancelled_caught
    await transport.aclose()
    with anyio.fail_after(5):
        assert await is_closed(peer), "nothing was sent before the end"


async def test_error_of_a_cancelled_exchange_is_discarded(pair):
    transport, peer = pair
    errors = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"no 1")
        with anyio.CancelScope() as scope:

            def read(_):
                scope.cancel()
                raise ProtocolError("nonsense")

            await transport.exchange(b"question", 10, read)
        await other_tasks_have_run()

    assert scope.cancelled_caught
    assert [] == errors


async def test_each_response_has_its_own_timeout(pair):
    """One timer serves them all, whether the next may take longer or not so long."""
    transport, peer = pair
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"no 1", b"no 2")
        read = Reader(NextFrame(b"question", 20.0), NextFrame(b"question", 0.02))
        with anyio.fail_after(5), pytest.raises(TimeoutError):
            await transport.exchange(b"question", 10.0, read)

    assert [b"no 1", b"no 2"] == read.order


async def test_timeout_of_an_exchange_does_not_end_the_next_one(pair):
    transport, peer = pair
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(respond, peer, b"no 1")
        await transport.exchange(b"question", 0.05, bytes)

    async def late():
        await receive_bytes(peer, 8)
        await anyio.sleep(0.1)
        await send_all(peer, framed(b"late"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(late)
        assert b"late" == await transport.exchange(b"question", 5.0, bytes)


async def respond_to(peer, request, respond):
    await receive_bytes(peer, len(request))
    await send_all(peer, respond)


LONG = framed(b"x" * (1 << 20))
PART = len(LONG) // 2
REST = LONG[PART:]


class PartialReader(Reader):
    """Finds a question while the second answer comes."""

    def __init__(self, *results, pipelined=None):
        pipelined = pipelined or NextFrame(b"begun", 5)
        first = NextFrame(b"question", 5, on_partial=self.note("begun", pipelined))
        super().__init__(first, *results)

    def __call__(self, respond):
        return super().__call__(bytes(respond)[:4])


async def serve_part(peer):
    """Answer, and say some of the next answer."""
    await receive_bytes(peer, len(b"question"))
    await send_all(peer, framed(b"no 1"))
    await receive_bytes(peer, len(b"question"))
    await send_all(peer, LONG[:PART])


async def serve_two(peer, *chunks):
    """Answer, and say this when what was found meanwhile was asked."""
    await serve_part(peer)
    assert b"begun" == await receive_bytes(peer, len(b"begun"))
    for each in chunks:
        await send_all(peer, each)
        await anyio.sleep(0.01)


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([REST + framed(b"no 3")], id="together"),
        pytest.param([REST, framed(b"no 3")], id="apart"),
        pytest.param([REST + b"\0\0", b"\0\4no 3"], id="in pieces"),
    ],
)
async def test_pipelined_request_is_sent_during_a_large_response(pair, chunks):
    transport, peer = pair
    read = PartialReader("the first of two", "the end")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_two, peer, *chunks)

        assert "the end" == await transport.exchange(b"question", 5, read)
    assert [b"no 1", "begun", b"xxxx", b"no 3"] == read.order


async def test_first_of_two_responses_may_have_a_next_frame(pair):
    transport, peer = pair
    read = PartialReader(NextFrame(b"question", 5), "the second of three", "the end")

    async def serve():
        await serve_two(peer, REST + framed(b"no 3"))
        await respond_to(peer, b"question", framed(b"no 4"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await transport.exchange(b"question", 5, read)
    assert [b"no 1", "begun", b"xxxx", b"no 3", b"no 4"] == read.order


async def test_deferred_without_a_result_waits_for_the_response_in_flight(pair):
    transport, peer = pair
    read = PartialReader()
    read.results += [Deferred(read.note("look")), "the end"]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_two, peer, REST, framed(b"no 3"))

        assert "the end" == await transport.exchange(b"question", 5, read)
    assert [b"no 1", "begun", b"xxxx", "look", b"no 3"] == read.order


async def test_more_responses_than_requests_raise(pair):
    transport, peer = pair
    frames = framed(b"no 3") + framed(b"no 4")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_two, peer, REST, frames)
        with pytest.raises(
            ProtocolError, match="unexpected bytes after a response of 4"
        ):
            await transport.exchange(
                b"question", 5, PartialReader("the first of two", "the end")
            )


async def test_second_of_two_responses_has_a_timeout(pair):
    transport, peer = pair
    read = PartialReader("the first of two", pipelined=NextFrame(b"begun", 0.05))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_two, peer, REST)
        with anyio.fail_after(5), pytest.raises(TimeoutError):
            await transport.exchange(b"question", 5, read)


async def test_no_third_request_is_pipelined(pair):
    transport, peer = pair
    read = PartialReader("the first of two", "the end")
    next_frame = NextFrame(b"begun", 5, on_partial=read.note("a third"))
    read.results[0].on_partial = read.note("begun", next_frame)

    async def serve():
        await serve_part(peer)
        await receive_bytes(peer, len(b"begun"))
        await send_all(peer, LONG[PART : PART + 10_000])
        await buffered(transport, PART + 10_000 - 4)
        await send_all(peer, LONG[PART + 10_000 :] + framed(b"no 3"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await transport.exchange(b"question", 5, read)
    assert [b"no 1", "begun", b"xxxx", b"no 3"] == read.order


async def test_on_partial_is_called_until_it_returns_a_frame(pair):
    transport, peer = pair
    read = PartialReader("the end")
    read.results[0].on_partial = read.note("nothing")

    async def serve():
        await serve_part(peer)
        await send_all(peer, LONG[PART:])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await transport.exchange(b"question", 5, read)
    assert [b"no 1", b"xxxx"] == [each for each in read.order if each != "nothing"]
    assert "nothing" in read.order


async def test_on_partial_of_an_exchange_ends_with_it(pair):
    transport, peer = pair
    read = PartialReader("the end", "the other's end")
    read.results[0].on_partial = read.note("nothing")

    async def serve():
        await serve_part(peer)
        await send_all(peer, LONG[PART:])
        await receive_bytes(peer, len(b"question"))
        await send_all(peer, LONG[:PART])
        await buffered(transport, PART - 4)
        await send_all(peer, LONG[PART:])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await transport.exchange(b"question", 5, read)
        read.order.clear()
        assert "the other's end" == await transport.exchange(b"question", 5, read)
    assert [b"xxxx"] == read.order


async def test_on_partial_is_not_called_during_a_small_response(pair):
    transport, peer = pair
    read = PartialReader("the end")

    async def serve():
        await receive_bytes(peer, len(b"question"))
        await send_all(peer, framed(b"no 1"))
        await receive_bytes(peer, len(b"question"))
        respond = framed(b"x" * 100_000)
        await send_all(peer, respond[:20_000])
        await buffered(transport, 20_000 - 4)
        await send_all(peer, respond[20_000:])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await transport.exchange(b"question", 5, read)
    assert [b"no 1", b"xxxx"] == read.order


async def test_on_partial_that_raises_raises_in_the_exchange(pair):
    transport, peer = pair
    read = PartialReader()

    def broken():
        raise ProtocolError("nothing fits")

    read.results[0].on_partial = broken
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_part, peer)

        with pytest.raises(ProtocolError, match="nothing fits"):
            await transport.exchange(b"question", 5, read)


async def test_on_partial_of_a_cancelled_exchange_is_not_called(pair):
    """The waiting task was cancelled, and has not run since."""
    transport, peer = pair
    read = PartialReader()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(transport.exchange, b"question", 5, read)
        await receive_bytes(peer, len(b"question"))
        await send_all(peer, framed(b"no 1"))
        await receive_bytes(peer, len(b"question"))
        transport.waiter.cancel()
        for part in (LONG[:4096], LONG[4096:PART]):
            room = transport.get_buffer(-1)
            room[: len(part)] = part
            transport.buffer_updated(len(part))

    assert [b"no 1"] == read.order
