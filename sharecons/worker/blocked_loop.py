"""Finds blocks of the event loop, and logs which handlers caused them.

A coroutine that works or sleeps without awaiting blocks its event loop: meanwhile the
worker sends no heartbeats, renewals and acknowledgements, and its locks can end.

A task measures how late it wakes up, by the clock of the event loop. So there are no
blocks on a virtual clock. The steps of handlers are measured too: a late wakeup without
long steps has another cause. It is not possible to distinguish all of these: a process
that is stopped (SIGSTOP) in a step of a handler looks like a handler that blocks.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, final

import anyio

from sharecons.net.io.event_loop import Clock
from sharecons.worker.loop_watch import LoopWatch
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.positions import item_text

__all__ = [
    "BLOCKED_AFTER",
    "LONG_STEP",
    "Block",
    "BlockedLoop",
    "BlockedLoopLog",
    "Call",
]

BLOCKED_AFTER: Final = 1.0
"""Blocks of more seconds are logged. The shortest lock that Kafka allows by default
(15 s) is renewed after 7.5 s, and again every 2.3 s."""

LONG_STEP: Final = 0.1
"""Seconds of a handler without awaiting that count as a part of a block."""

INTERVAL: Final = 0.5
"""Seconds between two wakeups of the task."""

PERIOD: Final = 60.0
"""Seconds between two lines of one kind."""

MAX_NAMED: Final = 3
"""How many records are named in a line."""

BLOCKED: Final = (
    "a handler blocked the event loop: no heartbeats and renewals were sent meanwhile, "
    "so locks can be lost. Make it a plain function (`def`), which runs in a thread, "
    "or await anyio.to_thread.run_sync() for what blocks"
)
STOPPED: Final = (
    "the event loop did not run, and no handler has blocked it: no heartbeats and "
    "renewals were sent meanwhile, so locks can be lost. Other code of this program "
    "blocked it or held the GIL, or the process was stopped or had no CPU"
)


class Call(NamedTuple):
    """A call of a handler that did not await for `seconds`, and its first records."""

    seconds: float
    handler: str
    records: tuple[str, ...]


class Block(NamedTuple):
    """Blocks of the event loop.

    Attributes:
        seconds: the longest one.
        number: how many there were.
        calls: the handlers in the longest one; empty if handlers were not the cause.
    """

    seconds: float
    number: int
    calls: tuple[Call, ...]


@final
class BlockedLoop:
    """Decides what to report: up to one block in PERIOD with handlers, and one without.

    Further blocks are reported together, after the period.
    """

    def __init__(self) -> None:
        self._steps: list[Call] = []
        self._blocks: dict[bool, Block] = {}
        self._report_at = {True: 0.0, False: 0.0}

    def on_step(self, call: Call) -> None:
        """Remember a long step of a handler until the next wakeup."""
        self._steps.append(call)

    def on_wake(self, late: float, now: float) -> list[Block]:
        """Return the blocks to report; the task woke up `late` seconds late."""
        steps, self._steps = self._steps, []
        steps.sort(key=lambda call: call.seconds, reverse=True)
        # The task notices a block that began between two wakeups INTERVAL too late.
        longest = steps[0].seconds if steps and late > BLOCKED_AFTER - INTERVAL else 0.0
        seconds = max(late, longest)
        if seconds > BLOCKED_AFTER:
            is_handler = sum(call.seconds for call in steps) > late / 2
            self._add(seconds, tuple(steps[:MAX_NAMED]) if is_handler else ())
        return [self._blocks.pop(kind) for kind in self._due(now)]

    def end(self) -> list[Block]:
        """Return the blocks that were not reported yet."""
        blocks, self._blocks = self._blocks, {}
        return list(blocks.values())

    def _add(self, seconds: float, calls: tuple[Call, ...]) -> None:
        block = Block(seconds, 1, calls)
        before = self._blocks.get(bool(calls))
        if before is not None:
            block = max(before, block)._replace(number=before.number + 1)
        self._blocks[bool(calls)] = block

    def _due(self, now: float) -> list[bool]:
        due = [kind for kind in self._blocks if now >= self._report_at[kind]]
        self._report_at |= dict.fromkeys(due, now + PERIOD)
        return due


@final
class BlockedLoopLog:
    """Logs the blocks in a task.

    Args:
        name_of: returns the name of the handler that has these settings.
        watch: receives a beat whenever the task wakes up.
    """

    def __init__(
        self,
        log: Any,
        clock: Clock,
        name_of: Callable[[HandlerSettings], str],
        watch: LoopWatch,
    ) -> None:
        self._log = log
        self._clock = clock
        self._name_of = name_of
        self._watch = watch
        self._loop = BlockedLoop()

    def on_long_step(self, items: Sequence[WorkItem], seconds: float) -> None:
        """Remember that the handler of these records did not await for `seconds`."""
        records = tuple(item_text(item) for item in items[: MAX_NAMED + 1])
        self._loop.on_step(Call(seconds, self._name_of(items[0].settings), records))

    async def run(self) -> None:
        """Measure until cancelled."""
        try:
            while True:
                self._watch.beat()
                wake_at = self._clock() + INTERVAL
                try:
                    await anyio.sleep_until(wake_at)
                finally:
                    now = self._clock()
                    self._write(self._loop.on_wake(now - wake_at, now))
        finally:
            self._watch.end()
            self._write(self._loop.end())

    def _write(self, blocks: list[Block]) -> None:
        for block in blocks:
            fields: dict[str, object] = {}
            if block.calls:
                handlers = dict.fromkeys(call.handler for call in block.calls)
                fields = {
                    "handler": ", ".join(handlers),
                    "records": _names(block.calls),
                }
            self._log.warning(
                BLOCKED if block.calls else STOPPED,
                seconds=round(block.seconds, 1),
                blocks=block.number,
                **fields,
            )


def _names(calls: Sequence[Call]) -> str:
    names = [name for call in calls for name in call.records]
    more = [] if len(names) <= MAX_NAMED else ["…"]
    return ", ".join(names[:MAX_NAMED] + more)
