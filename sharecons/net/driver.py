"""The one loop that carries a machine out, and the bell that wakes it."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from sharecons.errors import Error
from sharecons.net.clock import running_clock
from sharecons.net.waiting import Waiter, new_waiter

__all__ = ["Bell", "Machine", "drive"]


class Machine(Protocol):
    """See `sharecons.protocol` for what these promise."""

    @property
    def finished(self) -> bool: ...

    def next_request(self, now: float) -> Any: ...

    def next_deadline(self, now: float) -> float: ...

    def answered(self, request: Any, answer: Any, now: float) -> None: ...

    def failed(self, request: Any, error: Error, now: float) -> None: ...


class Bell:
    """Wakes whoever waits; a ring while nobody waits is heard by the next who does."""

    def __init__(self) -> None:
        self._rung = False
        self._waiter: Waiter | None = None

    def ring(self) -> None:
        self._rung = True
        if self._waiter is not None:
            self._waiter.wake()

    async def wait_until(self, deadline: float) -> None:
        """Wait for a ring, or until the deadline on `anyio.current_time()`'s clock."""
        if not self._rung:
            if self._waiter is None:
                # Bells are made where no event loop runs, too.
                self._waiter = new_waiter()
            await self._waiter.wait(deadline)
        self._rung = False


async def drive(
    machine: Machine,
    send: Callable[[Any], Awaitable[Any]],
    bell: Bell,
    told: Callable[[], None],
) -> None:
    """Do what a machine says, until it is finished.

    `send` gives the answer, or None if it told the machine already; it may then have
    gone on with what the machine asked next, and what it raises is of the last of them.
    `told` runs after each thing that the machine was told: it takes what the machine
    has for others.
    Cancelling this leaves a request with unknown outcome.
    """
    clock = running_clock()
    while not machine.finished:
        request = machine.next_request(clock())
        told()
        if request is None:
            if not machine.finished:
                await bell.wait_until(machine.next_deadline(clock()))
            continue
        try:
            answer = await send(request)
        except Error as error:
            machine.failed(request, error, clock())
        else:
            if answer is not None:
                machine.answered(request, answer, clock())
        told()
