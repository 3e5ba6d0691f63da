"""The one loop that carries a machine out."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from sharecons.errors import Error
from sharecons.net.io.clock import running_clock
from sharecons.net.io.event import AutoResetEvent
from sharecons.net.io.idle_watch import Wait

__all__ = ["Machine", "drive"]


async def wait_only(wait: Wait) -> None:
    await wait()


class Machine(Protocol):
    """See `sharecons.protocol` for what these promise."""

    @property
    def finished(self) -> bool: ...

    def next_request(self, now: float) -> Any: ...

    def next_deadline(self, now: float) -> float: ...

    def answered(self, request: Any, response: Any, now: float, /) -> None: ...

    def failed(self, request: Any, error: Error, now: float, /) -> None: ...


async def drive(
    machine: Machine,
    send: Callable[[Any], Awaitable[Any]],
    wakeup: AutoResetEvent,
    on_change: Callable[[], None],
    idle: Callable[[Wait], Awaitable[None]] = wait_only,
) -> None:
    """Do what a machine says, until it is finished.

    `send` gives the answer, or None if it told the machine already; it may then have
    gone on with what the machine asked next, and what it raises is of the last of them.
    `idle` is given what waits for the bell, where no request is due: it may watch a
    connection meanwhile.
    `told` runs after each thing that the machine was told: it takes what the machine
    has for others.
    Cancelling this leaves a request with unknown outcome.
    """
    clock = running_clock()
    while not machine.finished:
        request = machine.next_request(clock())
        on_change()
        if request is None:
            if not machine.finished:
                deadline = machine.next_deadline(clock())
                await idle(partial(wakeup.wait_until, deadline))
            continue
        try:
            response = await send(request)
        except Error as error:
            machine.failed(request, error, clock())
        else:
            if response is not None:
                machine.answered(request, response, clock())
        on_change()
