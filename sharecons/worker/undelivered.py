"""Records whose last delivery ends in the buffer, before the worker takes them.

Their locks end there if the event loop is blocked, the process stopped, or the
connection lost; a pause renews them. The broker archives them then, but the worker has
their keys and values, so it loses them as records that it has taken.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from sharecons.member.pausable_buffer import PausableBuffer
from sharecons.net.io.event_loop import FOREVER, Clock
from sharecons.worker.machine.actions import Action
from sharecons.worker.machine.worker_machine import WorkerMachine

__all__ = ["UndeliveredRecords"]

REASON: Final = "the lock ended before the worker took the record"


@final
class UndeliveredRecords:
    """Passes these records of a buffer to the machine.

    Args:
        execute: carries out actions.
    """

    def __init__(
        self,
        buffer: PausableBuffer,
        machine: WorkerMachine,
        execute: Callable[[Sequence[Action]], None],
        clock: Clock,
    ) -> None:
        self._buffer = buffer
        self._machine = machine
        self._execute = execute
        self._clock = clock
        buffer.on_undelivered = self._on_undelivered
        queues = machine.scheduler.queues
        if any(queue.settings.max_attempts == 1 for queue in queues):
            buffer.hold = FOREVER  # a second delivery would be a dead letter

    def look(self) -> None:
        """Look for records of paused topics that are not renewed; call this often."""
        self._buffer.drop_lost()

    def _on_undelivered(self, records: Sequence[Any]) -> None:
        limit = self._machine.decisions.delivery_limit
        last = [record for record in records if record.delivery_count >= limit]
        if last:
            now = self._clock()
            items = self._machine.new_items(last, now, time.time())
            self._execute(self._machine.on_taken(items, now))
            self._execute(self._machine.on_locks_lost(items, REASON))
