"""Event loops whose clock jumps to the next deadline when nothing else is ready.

An hour of waiting takes no time and always has the same result. `backend` returns
values for anyio's pytest plugin:

    @pytest.fixture(params=virtual_time.BACKENDS)
    def anyio_backend(request):
        return virtual_time.backend(request.param)

Use it for connections over memory only, as of `EmbeddedBroker(listen=False)`: the clock
would jump past bytes under way in a socket, and past the work of a thread.
"""

import asyncio
import math
import selectors
import sys
from typing import Any, Final, TypeAlias

__all__ = [
    "BACKENDS",
    "IN_REAL_TIME",
    "Backend",
    "VirtualTimeLoop",
    "backend",
    "check_real_time",
    "is_virtual",
]
__dir__ = __all__.copy

Backend: TypeAlias = tuple[str, dict[str, object]]

DEADLOCK_TIMEOUT: Final = 5.0
"""Real seconds after which a loop without ready tasks and deadlines is stuck."""

IN_REAL_TIME: Final = (
    "Sockets and threads work in real time: the clock would jump past responses that "
    "are on their way, so that every request would time out."
)
"""Why brokers with ports do not work on a virtual clock."""


class JumpingSelector(selectors.DefaultSelector):
    """Lets time pass by moving the clock instead of waiting."""

    passed = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(DEADLOCK_TIMEOUT)
            if not ready:
                raise RuntimeError("deadlock: all tasks wait, and none has a deadline")
            return ready
        self.passed += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """asyncio's event loop with a virtual clock, which starts at 0."""

    def __init__(self) -> None:
        self._selector = JumpingSelector()
        super().__init__(self._selector)

    def time(self) -> float:
        return self._selector.passed

    # asyncio calls timers that are due within the clock's resolution, by default a
    # nanosecond. A task that is woken early and waits for the remaining time would be
    # woken again immediately, and time would never pass.
    @property
    def _clock_resolution(self) -> float:
        return math.ulp(self.time())

    @_clock_resolution.setter
    def _clock_resolution(self, value: float) -> None:
        pass


BACKENDS: Final = ("asyncio", "trio")


def backend(name: str) -> Backend:
    """Return a value for `anyio_backend`, given a name of BACKENDS."""
    if name == "trio":
        from trio.testing import MockClock

        return "trio", {"clock": MockClock(autojump_threshold=0)}
    return "asyncio", {"loop_factory": VirtualTimeLoop}


def is_virtual(backend: object) -> bool:
    """Return whether a value of `anyio_backend` has a virtual clock."""
    if not isinstance(backend, tuple):
        return False
    _, options = backend
    return options.get("loop_factory") is VirtualTimeLoop or _is_mock(
        options.get("clock")
    )


def check_real_time(what: str) -> None:
    """Raise RuntimeError if the event loop of this thread has a virtual clock."""
    if _is_running():
        raise RuntimeError(
            f"{what} cannot be used on a virtual clock. {IN_REAL_TIME} Use "
            "`async with EmbeddedBroker(listen=False) as broker:` and "
            "`ShareConsumer(..., network=broker.network)` instead"
        )


def _is_running() -> bool:
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return _is_mock(trio.lowlevel.current_clock())
    try:
        return isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    except RuntimeError:
        return False


def _is_mock(clock: object) -> bool:
    trio_testing: Any = sys.modules.get("trio.testing")
    return trio_testing is not None and isinstance(clock, trio_testing.MockClock)
