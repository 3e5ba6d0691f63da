"""The auto-reset event, and the loop that runs a state machine."""

import anyio
import pytest

from sharecons.errors import ConnectionFailedError, Error
from sharecons.member.drive import drive
from sharecons.net.io.event_loop import AutoResetEvent
from tests.net.interrupts import interruptions

pytestmark = pytest.mark.anyio


NEVER = float("inf")


# The event.


async def time_waited(event, deadline=NEVER):
    started = anyio.current_time()
    await event.wait_until(deadline)
    return anyio.current_time() - started


async def test_event_set_before_the_wait_ends_it_immediately():
    event = AutoResetEvent()
    event.set()

    with anyio.fail_after(10):
        assert 0.0 == await time_waited(event)


async def test_event_set_during_the_wait_ends_it():
    event = AutoResetEvent()

    async def set_later():
        await anyio.sleep(1)
        event.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(set_later)
        assert 1.0 == pytest.approx(await time_waited(event, anyio.current_time() + 5))


async def test_wait_ends_at_its_deadline():
    assert 5.0 == pytest.approx(
        await time_waited(AutoResetEvent(), anyio.current_time() + 5)
    )


async def test_wait_with_a_past_deadline_ends_immediately():
    assert 0.0 == await time_waited(AutoResetEvent(), anyio.current_time() - 5)


async def test_event_set_twice_ends_one_wait():
    event = AutoResetEvent()
    event.set()
    event.set()

    assert 0.0 == await time_waited(event, anyio.current_time() + 5)
    assert 5.0 == pytest.approx(await time_waited(event, anyio.current_time() + 5))


async def test_event_set_twice_during_a_wait_ends_one_wait():
    event = AutoResetEvent()

    async def set_later():
        await anyio.sleep(1)
        event.set()
        event.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(set_later)
        await time_waited(event)
        assert 5.0 == pytest.approx(await time_waited(event, anyio.current_time() + 5))


async def test_event_after_a_cancelled_wait_works():
    event = AutoResetEvent()
    with anyio.move_on_after(1):
        await event.wait_until(NEVER)
    event.set()

    assert 0.0 == await time_waited(event, anyio.current_time() + 5)


# The loop that runs a machine.


class Machine:
    """A state machine that sends the requests of its script, and ends with the script.

    Each entry is a number (seconds to wait) or a word (a request).
    """

    def __init__(self, *script, log=None):
        self.log = [] if log is None else log
        self.next_calls = 0
        self.due = 0.0
        self.script = list(script)

    @property
    def finished(self):
        return not self.script

    def next_request(self, now):
        self.next_calls += 1
        if self.script and isinstance(self.script[0], float):
            self.due = now + self.script.pop(0)
        if now < self.due or not self.script:
            return None
        self.log.append(f"request {self.script[0]}")
        return self.script[0]

    def next_deadline(self, now):
        return self.due

    def on_response(self, request, response, now):
        self.script.pop(0)
        self.log.append(f"response to {request}: {response}")

    def on_error(self, request, error, now):
        self.script.pop(0)
        self.log.append(f"error of {request}: {error}")

    def on_change(self):
        if not self.log or self.log[-1] != "on_change":
            self.log.append("on_change")


async def send(request):
    await anyio.lowlevel.checkpoint()
    if request == "fails":
        raise ConnectionFailedError("gone")
    return request.upper()


async def test_each_request_has_its_response_or_error_before_the_next_request():
    machine = Machine("a", "fails", "b")

    await drive(machine, send, AutoResetEvent(), machine.on_change)

    calls = [line for line in machine.log if line != "on_change"]
    assert [
        "request a",
        "response to a: A",
        "request fails",
        "error of fails: gone",
        "request b",
        "response to b: B",
    ] == calls


async def test_on_change_runs_after_each_request_and_response():
    machine = Machine("a", "fails")

    await drive(machine, send, AutoResetEvent(), machine.on_change)

    for line, following in zip(machine.log, machine.log[1:], strict=False):
        assert line == "on_change" or following == "on_change"
    assert "on_change" == machine.log[-1]


async def test_finished_machine_has_no_requests():
    machine = Machine()

    await drive(machine, send, AutoResetEvent(), machine.on_change)

    assert 0 == machine.next_calls


async def test_machine_that_finishes_in_next_request_ends_the_loop():
    class Ending(Machine):
        def next_request(self, now):
            self.script.clear()
            return None

    machine = Ending(5.0)
    with anyio.fail_after(1):
        await drive(machine, send, AutoResetEvent(), machine.on_change)

    assert ["on_change"] == machine.log


async def test_wait_for_a_deadline_does_not_spin():
    machine = Machine(3600.0, "a")
    started = anyio.current_time()

    await drive(machine, send, AutoResetEvent(), machine.on_change)

    assert 3600 == pytest.approx(anyio.current_time() - started)
    # Two calls for the wait and one for the request; the clock can wake it early.
    assert machine.next_calls <= 4


async def test_wakeup_ends_the_wait():
    event = AutoResetEvent()
    machine = Machine(NEVER, "a")

    async def set_event():
        await anyio.sleep(7)
        machine.due = 0.0
        event.set()

    started = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(set_event)
        await drive(machine, send, event, machine.on_change)

    assert 7 == pytest.approx(anyio.current_time() - started)
    assert machine.next_calls <= 4


async def test_wakeup_during_a_request_is_not_lost():
    event = AutoResetEvent()
    machine = Machine("a", NEVER, "b")

    async def slow(request):
        await anyio.sleep(1)
        if request == "a":
            event.set()
            machine.script[1] = 0.0
        return request

    with anyio.fail_after(10):
        await drive(machine, slow, event, machine.on_change)


async def test_other_exceptions_are_bugs_and_propagate():
    machine = Machine("a")

    async def buggy(request):
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await drive(machine, buggy, AutoResetEvent(), machine.on_change)
    assert "error of a: a bug" not in machine.log


async def test_every_library_error_is_passed_to_the_machine():
    machine = Machine("a")

    async def failing(request):
        raise Error("of the library")

    await drive(machine, failing, AutoResetEvent(), machine.on_change)

    assert "error of a: of the library" in machine.log


async def test_cancelled_at_each_await():
    """A machine receives each outcome at most once, and none after a cancel."""

    async def attempt(interrupted):
        machine = Machine("a", 1.0, "fails", "b")
        await interrupted(drive(machine, send, AutoResetEvent(), machine.on_change))

        calls = [line for line in machine.log if line != "on_change"]
        requests = [line for line in calls if line.startswith("request")]
        assert len(requests) - 1 <= len(calls) - len(requests) <= len(requests)
        for request, outcome in zip(calls[::2], calls[1::2], strict=False):
            assert request.split()[1] == outcome.split()[2].rstrip(":")

    steps = [step async for step in interruptions(attempt)]

    assert len(steps) >= 4
