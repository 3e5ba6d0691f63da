"""Records whose last delivery ends in the buffer, before the worker takes them.

Their locks end there if the event loop is blocked, the process stopped, or the
connection lost; a pause renews them. The broker archives them then, but the worker has
their keys and values, so it loses them as records that it has taken.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from sharecons.net.io.event_loop import Clock
from sharecons.worker.machine.actions import Action
from sharecons.worker.machine.worker_machine import WorkerMachine

__all__ = ["UndeliveredRecords"]

REASON: Final = "the lock ended before the worker took the record"


@final
class UndeliveredRecords:
    """Passes these records to the machine.

    Args:
        execute: carries out actions.
    """

    def __init__(
        self,
        machine: WorkerMachine,
        execute: Callable[[Sequence[Action]], None],
        clock: Clock,
    ) -> None:
        self._machine = machine
        self._execute = execute
        self._clock = clock

    def add(self, records: Sequence[Any]) -> None:
        """Handle the end of the locks of these records, before they were taken."""
        limit = self._machine.decisions.delivery_limit
        last = [record for record in records if record.delivery_count >= limit]
        if last:
            now = self._clock()
            items = self._machine.new_items(last, now, time.time())
            self._execute(self._machine.on_taken(items, now))
            self._execute(self._machine.on_locks_lost(items, REASON))
