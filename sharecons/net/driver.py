"""The one loop that carries a machine out, and the bell that wakes it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import anyio

from sharecons.errors import Error
from sharecons.net.clock import running_clock

__all__ = ["FOREVER", "Bell", "Machine", "drive", "wait_until"]

FOREVER: Final = float("inf")


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
        self._event: anyio.Event | None = None

    def ring(self) -> None:
        self._rung = True
        if self._event is not None:
            self._event.set()

    async def wait_until(self, deadline: float) -> None:
        """Wait for a ring, or until the deadline on `anyio.current_time()`'s clock."""
        if not self._rung:
            self._event = anyio.Event()
            try:
                await wait_until(self._event, deadline)
            finally:
                self._event = None
        self._rung = False


async def wait_until(event: anyio.Event, deadline: float) -> bool:
    """Wait for an event; False if the deadline came before it."""
    if deadline == FOREVER:
        # A scope takes as long as all else that a waiting asker does.
        await event.wait()
        return True
    with anyio.CancelScope(deadline=deadline):
        await event.wait()
        return True
    return False


async def drive(
    machine: Machine,
    send: Callable[[Any], Awaitable[Any]],
    bell: Bell,
    told: Callable[[], None],
) -> None:
    """Do what a machine says, until it is finished.

    `told` runs after each thing that the machine was told: it takes what the
    machine has for others. Cancelling this leaves a request with unknown outcome.
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
            machine.answered(request, answer, clock())
        told()
