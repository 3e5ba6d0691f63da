"""What a wire exchanges by itself, and who runs before."""

import asyncio

import anyio
import pytest

from sharecons.errors import ProtocolError
from sharecons.net.io.pipeline import Deferred, NextFrame
from sharecons.net.io.wakeup import FOREVER, FutureWaiter
from tests.net.ends import WIRES, framed, gone, heard, say
from tests.net.waits import buffered, other_tasks_have_run, wait_and_end

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["protocol", "protocol, uvloop"])
def kind(request):
    return WIRES[request.param]


@pytest.fixture
def anyio_backend(kind):
    return kind[1]


class Reader:
    """Reads each answer as it is told, and notes what happens in which order."""

    def __init__(self, *gives):
        self.gives = list(gives)
        self.order = []

    def __call__(self, answer):
        self.order.append(bytes(answer))
        return self.gives.pop(0)

    def note(self, what, gives=None):
        def noted():
            self.order.append(what)
            return gives

        return noted


async def answer(end, *answers):
    for each in answers:
        await heard(end, len(b"question"))
        await say(end, framed(each))


async def test_a_wire_exchanges_by_itself_what_goes_on(ends):
    wire, theirs = ends
    onward = NextFrame(b"question", 10)
    read = Reader(onward, onward, "the end")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, theirs, b"no 1", b"no 2", b"no 3")

        assert "the end" == await wire.exchange(b"question", 10, read)
    assert [b"no 1", b"no 2", b"no 3"] == read.order


async def test_what_goes_on_leaves_before_anybody_runs(ends):
    wire, theirs = ends
    waiter, left = FutureWaiter(), []

    def read(_):
        waiter.wake()
        return NextFrame(b"onward", 10)

    async def work():
        await wait_and_end(waiter, FOREVER)
        left.append(theirs.recv(100))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        with anyio.move_on_after(5):
            tasks.start_soon(answer, theirs, b"answer")
            tasks.start_soon(wire.exchange, b"question", 10, read)
            while not left:
                await asyncio.sleep(0)
        tasks.cancel_scope.cancel()

    assert [b"onward"] == left


async def test_what_comes_later_is_looked_for_when_who_was_woken_has_run(ends):
    wire, theirs = ends
    waiter = FutureWaiter()
    read = Reader("the end")

    async def work():
        await wait_and_end(waiter, FOREVER)
        read.order.append("work")

    def first(frame):
        waiter.wake()
        read.gives.insert(0, Deferred(read.note("look", NextFrame(b"question", 10))))
        return read(frame)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        tasks.start_soon(answer, theirs, b"no 1", b"no 2")
        await other_tasks_have_run()
        answers = iter([first, read])
        got = await wire.exchange(b"question", 10, lambda f: next(answers)(f))

    assert "the end" == got
    assert [b"no 1", "work", "look", b"no 2"] == read.order


async def test_what_looking_later_raises_is_raised(ends):
    wire, theirs = ends

    def refuse():
        raise ProtocolError("nonsense")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, theirs, b"no 1")
        with pytest.raises(ProtocolError, match="nonsense"):
            await wire.exchange(b"question", 10, lambda _: Deferred(refuse))


async def test_nobody_looks_where_nobody_waits_any_more(ends):
    wire, theirs = ends
    looked = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, theirs, b"no 1")
        with anyio.CancelScope() as scope:

            def read(_):
                scope.cancel()
                return Deferred(lambda: looked.append(True))

            await wire.exchange(b"question", 10, read)
        await other_tasks_have_run()

    assert scope.cancelled_caught
    assert [] == looked


async def test_nothing_follows_where_nobody_waits_any_more(ends):
    """What an answer let go on may have ended all that."""
    wire, theirs = ends
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, theirs, b"no 1")
        with anyio.CancelScope() as scope:

            def read(_):
                scope.cancel()
                return NextFrame(b"onward", 10)

            await wire.exchange(b"question", 10, read)

    assert scope.cancelled_caught
    await wire.aclose()
    with anyio.fail_after(5):
        assert await gone(theirs), "nothing was sent before the end"


async def test_what_fails_where_nobody_waits_any_more_is_nobodys(ends):
    wire, theirs = ends
    troubles = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, trouble: troubles.append(trouble))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, theirs, b"no 1")
        with anyio.CancelScope() as scope:

            def read(_):
                scope.cancel()
                raise ProtocolError("nonsense")

            await wire.exchange(b"question", 10, read)
        await other_tasks_have_run()

    assert scope.cancelled_caught
    assert [] == troubles


async def test_each_answer_has_its_own_time(ends):
    """One timer serves them all, whether the next may take longer or not so long."""
    wire, theirs = ends
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, theirs, b"no 1", b"no 2")
        read = Reader(NextFrame(b"question", 20.0), NextFrame(b"question", 0.02))
        with anyio.fail_after(5), pytest.raises(TimeoutError):
            await wire.exchange(b"question", 10.0, read)

    assert [b"no 1", b"no 2"] == read.order


async def test_time_that_an_answer_did_not_need_is_not_held_against_the_next(ends):
    wire, theirs = ends
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, theirs, b"no 1")
        await wire.exchange(b"question", 0.05, bytes)

    async def late():
        await heard(theirs, 8)
        await anyio.sleep(0.1)
        await say(theirs, framed(b"late"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(late)
        assert b"late" == await wire.exchange(b"question", 5.0, bytes)


async def say_after(theirs, question, answer):
    await heard(theirs, len(question))
    await say(theirs, answer)


LONG = framed(b"x" * (1 << 20))
SOME = len(LONG) // 2
END = LONG[SOME:]


class Begun(Reader):
    """Finds a question while the second answer comes."""

    def __init__(self, *gives, begun=None):
        begun = begun or NextFrame(b"begun", 5)
        first = NextFrame(b"question", 5, on_partial=self.note("begun", begun))
        super().__init__(first, *gives)

    def __call__(self, answer):
        return super().__call__(bytes(answer)[:4])


async def served_some(theirs):
    """Answer, and say some of the next answer."""
    await heard(theirs, len(b"question"))
    await say(theirs, framed(b"no 1"))
    await heard(theirs, len(b"question"))
    await say(theirs, LONG[:SOME])


async def served_two(theirs, *said):
    """Answer, and say this when what was found meanwhile was asked."""
    await served_some(theirs)
    assert b"begun" == await heard(theirs, len(b"begun"))
    for each in said:
        await say(theirs, each)
        await anyio.sleep(0.01)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([END + framed(b"no 3")], id="together"),
        pytest.param([END, framed(b"no 3")], id="apart"),
        pytest.param([END + b"\0\0", b"\0\4no 3"], id="in pieces"),
    ],
)
async def test_while_much_comes_what_is_found_is_sent_and_answered_after(ends, said):
    wire, theirs = ends
    read = Begun("the first of two", "the end")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served_two, theirs, *said)

        assert "the end" == await wire.exchange(b"question", 5, read)
    assert [b"no 1", "begun", b"xxxx", b"no 3"] == read.order


async def test_the_first_answer_of_two_may_have_something_follow(ends):
    wire, theirs = ends
    read = Begun(NextFrame(b"question", 5), "the second of three", "the end")

    async def serve():
        await served_two(theirs, END + framed(b"no 3"))
        await say_after(theirs, b"question", framed(b"no 4"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await wire.exchange(b"question", 5, read)
    assert [b"no 1", "begun", b"xxxx", b"no 3", b"no 4"] == read.order


async def test_what_looks_in_vain_waits_for_what_is_under_way(ends):
    wire, theirs = ends
    read = Begun()
    read.gives += [Deferred(read.note("look")), "the end"]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served_two, theirs, END, framed(b"no 3"))

        assert "the end" == await wire.exchange(b"question", 5, read)
    assert [b"no 1", "begun", b"xxxx", "look", b"no 3"] == read.order


async def test_more_answers_than_were_asked_for(ends):
    wire, theirs = ends
    frames = framed(b"no 3") + framed(b"no 4")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served_two, theirs, END, frames)
        with pytest.raises(
            ProtocolError, match="unexpected bytes after a response of 4"
        ):
            await wire.exchange(b"question", 5, Begun("the first of two", "the end"))


async def test_the_second_of_two_has_a_time_limit_too(ends):
    wire, theirs = ends
    read = Begun("the first of two", begun=NextFrame(b"begun", 0.05))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served_two, theirs, END)
        with anyio.fail_after(5), pytest.raises(TimeoutError):
            await wire.exchange(b"question", 5, read)


async def test_while_two_are_to_come_nothing_more_is_looked_for(ends):
    wire, theirs = ends
    read = Begun("the first of two", "the end")
    onward = NextFrame(b"begun", 5, on_partial=read.note("a third"))
    read.gives[0].on_partial = read.note("begun", onward)

    async def serve():
        await served_some(theirs)
        await heard(theirs, len(b"begun"))
        await say(theirs, LONG[SOME : SOME + 10_000])
        await buffered(wire, SOME + 10_000 - 4)
        await say(theirs, LONG[SOME + 10_000 :] + framed(b"no 3"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await wire.exchange(b"question", 5, read)
    assert [b"no 1", "begun", b"xxxx", b"no 3"] == read.order


async def test_while_much_comes_it_is_looked_until_something_is_found(ends):
    wire, theirs = ends
    read = Begun("the end")
    read.gives[0].on_partial = read.note("in vain")

    async def serve():
        await served_some(theirs)
        await say(theirs, LONG[SOME:])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await wire.exchange(b"question", 5, read)
    assert [b"no 1", b"xxxx"] == [each for each in read.order if each != "in vain"]
    assert "in vain" in read.order


async def test_what_an_exchange_would_look_for_ends_with_it(ends):
    wire, theirs = ends
    read = Begun("the end", "the other's end")
    read.gives[0].on_partial = read.note("in vain")

    async def serve():
        await served_some(theirs)
        await say(theirs, LONG[SOME:])
        await heard(theirs, len(b"question"))
        await say(theirs, LONG[:SOME])
        await buffered(wire, SOME - 4)
        await say(theirs, LONG[SOME:])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await wire.exchange(b"question", 5, read)
        read.order.clear()
        assert "the other's end" == await wire.exchange(b"question", 5, read)
    assert [b"xxxx"] == read.order


async def test_nothing_is_looked_for_while_little_comes(ends):
    wire, theirs = ends
    read = Begun("the end")

    async def serve():
        await heard(theirs, len(b"question"))
        await say(theirs, framed(b"no 1"))
        await heard(theirs, len(b"question"))
        answer = framed(b"x" * 100_000)
        await say(theirs, answer[:20_000])
        await buffered(wire, 20_000 - 4)
        await say(theirs, answer[20_000:])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)

        assert "the end" == await wire.exchange(b"question", 5, read)
    assert [b"no 1", b"xxxx"] == read.order


async def test_what_cannot_be_looked_for_is_raised_where_it_was_asked(ends):
    wire, theirs = ends
    read = Begun()

    def broken():
        raise ProtocolError("nothing fits")

    read.gives[0].on_partial = broken
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served_some, theirs)

        with pytest.raises(ProtocolError, match="nothing fits"):
            await wire.exchange(b"question", 5, read)


async def test_nothing_is_looked_for_when_nobody_waits_any_more(ends):
    """Whoever waited was cancelled, and has not run since."""
    wire, theirs = ends
    read = Begun()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.exchange, b"question", 5, read)
        await heard(theirs, len(b"question"))
        await say(theirs, framed(b"no 1"))
        await heard(theirs, len(b"question"))
        wire.waiter.cancel()
        for part in (LONG[:4096], LONG[4096:SOME]):
            room = wire.get_buffer(-1)
            room[: len(part)] = part
            wire.buffer_updated(len(part))

    assert [b"no 1"] == read.order
