"""Brokers that hang, as a process does after SIGSTOP.

The kernel still accepts connections, and none is closed. The broker reads nothing,
responds to nothing, and notices no closed connection until it continues. It stays the
leader and the coordinator that it was: Kafka elects others after
broker.session.timeout.ms (9 s), a test by `move_leader` and `move_coordinator`.
"""

from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeAlias

import anyio

from sharecons.testing.broker.signals import Signal

__all__ = ["Hang", "Hangs", "Pause"]

Run: TypeAlias = Callable[[Callable[[], None]], None]
"""Runs a function on the event loop of the brokers, from any thread."""


class Pause:
    """The state of one broker: it runs, or it hangs. Its tasks wait here."""

    def __init__(self) -> None:
        self.is_active = False
        self._ended = Signal()

    def begin(self) -> None:
        self.is_active = True

    def end(self) -> None:
        self.is_active = False
        self._ended.notify()

    async def wait_until_ended(self) -> None:
        """Wait while the broker hangs; return immediately if it does not."""
        while self.is_active:
            event = anyio.Event()
            self._ended.add(event)
            await event.wait()


class Hang:
    """One or all brokers hang. Leaving its `with` block ends it."""

    def __init__(self, pauses: list[Pause], run: Run) -> None:
        self._pauses = pauses
        self._run = run
        run(self._begin)

    def undo(self) -> None:
        """Let the brokers continue: they handle what they have received meanwhile."""
        self._run(self._end)

    def _begin(self) -> None:
        for pause in self._pauses:
            pause.begin()

    def _end(self) -> None:
        for pause in self._pauses:
            pause.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


class Hangs:
    """The pauses of all brokers."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pauses: defaultdict[int, Pause] = defaultdict(Pause)

    def of_broker(self, node_id: int) -> Pause:
        return self._pauses[node_id]

    def begin(self, node_id: int | None) -> Hang:
        """Let a broker hang, or all with None.

        Raises:
            LookupError: there is no such broker.
        """
        self.check_exists(node_id)
        pauses = [
            pause for each, pause in self._pauses.items() if node_id in (None, each)
        ]
        return Hang(pauses, self._run)

    def check_exists(self, node_id: int | None) -> None:
        """Raise LookupError if there is no such broker; None is all of them."""
        if node_id is not None and node_id not in self._pauses:
            raise LookupError(f"broker {node_id!r} does not exist")

    def clear(self) -> None:
        """Let all brokers continue."""
        if any(pause.is_active for pause in self._pauses.values()):
            self._run(self._end_all)

    def _end_all(self) -> None:
        for pause in self._pauses.values():
            pause.end()
