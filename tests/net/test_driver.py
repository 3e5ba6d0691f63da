"""The bell, and the loop that carries a machine out."""

import anyio
import pytest

from sharecons.errors import ConnectionFailedError, Error
from sharecons.net.driver import drive
from sharecons.net.io.event import AutoResetEvent
from tests.net.interrupts import interruptions

pytestmark = pytest.mark.anyio

NEVER = float("inf")


# The bell.


async def waited(bell, deadline=NEVER):
    started = anyio.current_time()
    await bell.wait_until(deadline)
    return anyio.current_time() - started


async def test_ring_before_the_wait_is_heard():
    bell = AutoResetEvent()
    bell.set()

    with anyio.fail_after(10):
        assert 0.0 == await waited(bell)


async def test_ring_during_the_wait_is_heard():
    bell = AutoResetEvent()

    async def ring_later():
        await anyio.sleep(1)
        bell.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ring_later)
        assert 1.0 == pytest.approx(await waited(bell, anyio.current_time() + 5))


async def test_wait_ends_at_its_deadline():
    assert 5.0 == pytest.approx(
        await waited(AutoResetEvent(), anyio.current_time() + 5)
    )


async def test_deadline_in_the_past_is_not_waited_for():
    assert 0.0 == await waited(AutoResetEvent(), anyio.current_time() - 5)


async def test_ring_is_heard_once():
    bell = AutoResetEvent()
    bell.set()
    bell.set()

    assert 0.0 == await waited(bell, anyio.current_time() + 5)
    assert 5.0 == pytest.approx(await waited(bell, anyio.current_time() + 5))


async def test_ring_that_was_heard_during_a_wait_is_not_heard_again():
    bell = AutoResetEvent()

    async def ring_later():
        await anyio.sleep(1)
        bell.set()
        bell.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ring_later)
        await waited(bell)
        assert 5.0 == pytest.approx(await waited(bell, anyio.current_time() + 5))


async def test_ring_between_two_waits_is_heard_by_the_second():
    bell = AutoResetEvent()
    await waited(bell, anyio.current_time() + 1)
    bell.set()

    assert 0.0 == await waited(bell, anyio.current_time() + 5)


async def test_cancelled_wait_leaves_the_bell_as_it_was():
    bell = AutoResetEvent()
    with anyio.move_on_after(1):
        await bell.wait_until(NEVER)
    bell.set()

    assert 0.0 == await waited(bell, anyio.current_time() + 5)


# The loop. A script says what the machine asks; the rest is kept in a diary.


class Scripted:
    """A machine that asks what its script says, when it says; ends with the script.

    An entry is a number, seconds to wait for, or a word, to be asked.
    """

    def __init__(self, *script, diary=None):
        self.diary = [] if diary is None else diary
        self.looks = 0
        self._script = list(script)
        self._due = 0.0

    @property
    def finished(self):
        return not self._script

    def next_request(self, now):
        self.looks += 1
        if self._script and isinstance(self._script[0], float):
            self._due = now + self._script.pop(0)
        if now < self._due or not self._script:
            return None
        self.diary.append(f"ask {self._script[0]}")
        return self._script[0]

    def next_deadline(self, now):
        return self._due

    def answered(self, request, answer, now):
        self._script.pop(0)
        self.diary.append(f"answered {request}: {answer}")

    def failed(self, request, error, now):
        self._script.pop(0)
        self.diary.append(f"failed {request}: {error}")

    def told(self):
        if not self.diary or self.diary[-1] != "told":
            self.diary.append("told")


async def send(request):
    await anyio.lowlevel.checkpoint()
    if request == "trouble":
        raise ConnectionFailedError("gone")
    return request.upper()


async def test_requests_are_answered_or_failed_each_before_the_next():
    machine = Scripted("a", "trouble", "b")

    await drive(machine, send, AutoResetEvent(), machine.told)

    said = [line for line in machine.diary if line != "told"]
    assert [
        "ask a",
        "answered a: A",
        "ask trouble",
        "failed trouble: gone",
        "ask b",
        "answered b: B",
    ] == said


async def test_what_the_machine_was_told_by_who_sends_it_is_not_told_again():
    machine = Scripted("a", "b")

    async def tell(request):
        await anyio.lowlevel.checkpoint()
        machine.answered(request, "at once", 0.0)

    await drive(machine, tell, AutoResetEvent(), machine.told)

    said = [line for line in machine.diary if line != "told"]
    assert ["ask a", "answered a: at once", "ask b", "answered b: at once"] == said


async def test_told_runs_after_all_that_the_machine_is_told():
    machine = Scripted("a", "trouble")

    await drive(machine, send, AutoResetEvent(), machine.told)

    for line, following in zip(machine.diary, machine.diary[1:], strict=False):
        assert line == "told" or following == "told"
    assert "told" == machine.diary[-1]


async def test_finished_machine_is_asked_nothing():
    machine = Scripted()

    await drive(machine, send, AutoResetEvent(), machine.told)

    assert 0 == machine.looks


async def test_machine_that_finishes_when_it_is_asked_ends_the_loop():
    class Ending(Scripted):
        def next_request(self, now):
            self._script.clear()
            return None

    machine = Ending(5.0)
    with anyio.fail_after(1):
        await drive(machine, send, AutoResetEvent(), machine.told)

    assert ["told"] == machine.diary


async def test_deadline_is_waited_for_without_spinning():
    machine = Scripted(3600.0, "a")
    started = anyio.current_time()

    await drive(machine, send, AutoResetEvent(), machine.told)

    assert 3600 == pytest.approx(anyio.current_time() - started)
    # Twice for the wait, once for the request; the clock may wake one a bit early.
    assert machine.looks <= 4


async def test_bell_ends_the_wait():
    bell = AutoResetEvent()
    machine = Scripted(NEVER, "a")

    async def ring():
        await anyio.sleep(7)
        machine._due = 0.0
        bell.set()

    started = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ring)
        await drive(machine, send, bell, machine.told)

    assert 7 == pytest.approx(anyio.current_time() - started)
    assert machine.looks <= 4


async def test_ring_while_a_request_is_under_way_is_not_lost():
    bell = AutoResetEvent()
    machine = Scripted("a", NEVER, "b")

    async def slow(request):
        await anyio.sleep(1)
        if request == "a":
            bell.set()
            machine._script[1] = 0.0
        return request

    with anyio.fail_after(10):
        await drive(machine, slow, bell, machine.told)


async def test_other_exceptions_than_ours_are_bugs_and_pass():
    machine = Scripted("a")

    async def buggy(request):
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await drive(machine, buggy, AutoResetEvent(), machine.told)
    assert "failed a: a bug" not in machine.diary


async def test_every_error_of_ours_is_told_to_the_machine():
    machine = Scripted("a")

    async def failing(request):
        raise Error("ours")

    await drive(machine, failing, AutoResetEvent(), machine.told)

    assert "failed a: ours" in machine.diary


async def test_cancelled_at_each_await():
    """A machine is told of a request's outcome at most once, and not after a cancel."""

    async def attempt(interrupted):
        machine = Scripted("a", 1.0, "trouble", "b")
        await interrupted(drive(machine, send, AutoResetEvent(), machine.told))

        said = [line for line in machine.diary if line != "told"]
        asked = [line for line in said if line.startswith("ask")]
        assert len(asked) - 1 <= len(said) - len(asked) <= len(asked)
        for question, outcome in zip(said[::2], said[1::2], strict=False):
            assert question.split()[1] == outcome.split()[1].rstrip(":")

    steps = [step async for step in interruptions(attempt)]

    assert len(steps) >= 4
