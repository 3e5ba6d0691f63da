"""A warning about loops that end at their first record again and again."""

from typing import Any, Final

from sharecons.log import get_logger

__all__ = ["LeftLoops"]

MAX_IN_A_ROW: Final = 3

TEXT: Final = (
    "records are delivered again and again: three loops in a row ended at their first "
    "record without acknowledging it, so it is released; read all records in one loop, "
    "call record.accept() before leaving the loop, or use consumer.poll()"
)


class LeftLoops:
    """Counts the loops of one consumer that released their first record or batch.

    `anext(aiter(consumer))` starts a loop each time, so in implicit mode it receives
    the same records until they are archived.
    """

    def __init__(self, group_id: str) -> None:
        self._log: Any = get_logger(__name__, group=group_id)
        self._in_a_row = 0
        self._has_warned = False

    def on_left(self, *, released_first: bool) -> None:
        """Note that a loop with at least one record has ended; warn once if due."""
        self._in_a_row = self._in_a_row + 1 if released_first else 0
        if self._in_a_row >= MAX_IN_A_ROW and not self._has_warned:
            self._has_warned = True
            self._log.warning(TEXT)
