"""A warning about loops and tasks that leave their first records again and again."""

from typing import Any, Final

from sharecons.log import get_logger

__all__ = ["LeftLoops"]

MAX_IN_A_ROW: Final = 3

LOOPS: Final = (
    "records are delivered again and again: three loops in a row ended at their first "
    "record without acknowledging it, so it is released; read all records in one loop, "
    "call record.accept() before leaving the loop, or use consumer.poll()"
)

TASKS: Final = (
    "records are delivered again and again: three tasks in a row ended without "
    "acknowledging the records of their first poll(), so they are released; call "
    "poll() in the task that processes the records, which accepts them by its next "
    "poll(), or call record.accept() before the task ends"
)


class LeftLoops:
    """Counts the loops of one consumer that released their first record or batch.

    `anext(aiter(consumer))` starts a loop each time, so in implicit mode it receives
    the same records until they are archived. So does a task that calls poll() once.

    Args:
        is_loops: it counts loops, and not tasks that poll.
    """

    def __init__(self, group_id: str, *, is_loops: bool) -> None:
        self._log: Any = get_logger(__name__, group=group_id)
        self._is_loops = is_loops
        self._in_a_row = 0
        self._has_warned = False

    def on_left(self, *, released_first: bool) -> None:
        """Count a loop that ended after at least one record; warn once if due."""
        self._in_a_row = self._in_a_row + 1 if released_first else 0
        if self._in_a_row >= MAX_IN_A_ROW and not self._has_warned:
            self._has_warned = True
            if self._is_loops:
                self._log.warning(LOOPS)
            else:
                self._log.warning(TASKS)
