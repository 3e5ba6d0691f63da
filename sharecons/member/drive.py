"""Running a state machine: sending its requests, and passing it the responses."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from sharecons.errors import Error
from sharecons.net.io.event_loop import AutoResetEvent, running_clock
from sharecons.net.io.idle_watch import Wait

__all__ = ["Machine", "drive"]


async def wait_only(wait: Wait) -> None:
    await wait()


class Machine(Protocol):
    """A state machine of `sharecons.protocol`, which describes these methods."""

    @property
    def finished(self) -> bool: ...

    def next_request(self, now: float) -> Any: ...

    def next_deadline(self, now: float) -> float: ...

    def on_response(self, request: Any, response: Any, now: float, /) -> None: ...

    def on_error(self, request: Any, error: Error, now: float, /) -> None: ...


async def drive(
    machine: Machine,
    send: Callable[[Any], Awaitable[Any]],
    wakeup: AutoResetEvent,
    on_change: Callable[[], None],
    idle: Callable[[Wait], Awaitable[None]] = wait_only,
) -> None:
    """Run a machine until it is finished.

    Cancelling this leaves the outcome of a request unknown.

    Args:
        send: sends a request and returns the response.
        wakeup: ends a wait for the machine's next deadline.
        on_change: called after each response, error and request; takes the events of
            the machine.
        idle: awaits its argument while no request is due; it can watch a connection
            meanwhile.
    """
    clock = running_clock()
    while not machine.finished:
        request = machine.next_request(clock())
        on_change()  # a choice can have events as well, such as failed renewals
        if request is None:
            if not machine.finished:
                deadline = machine.next_deadline(clock())
                await idle(partial(wakeup.wait_until, deadline))
            continue
        try:
            response = await send(request)
        except Error as error:
            machine.on_error(request, error, clock())
        else:
            machine.on_response(request, response, clock())
        on_change()
