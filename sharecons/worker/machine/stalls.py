"""Finds the records that hold up their partitions; one warning for each."""

import math
from typing import Final, final

from sharecons._record import TopicPartition
from sharecons.worker.machine.actions import Action, Warn
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.positions import item_position

__all__ = ["StallWarnings"]

HOLDS_UP: Final = (
    "a record holds up its partition: no member receives records behind it "
    "until it is settled"
)


@final
class StallWarnings:
    """The warnings of one worker."""

    def __init__(self, window: WindowTracker) -> None:
        self._window = window
        self._warned_of: dict[TopicPartition, int] = {}

    def find(self, now: float) -> list[Action]:
        """Return the warnings that are new."""
        warnings: list[Action] = []
        for item, seconds in self._window.held_up(now):
            where, offset = item.topic_partition, item.record.offset
            if self._warned_of.get(where) != offset:
                self._warned_of[where] = offset
                fields = {**item_position(item), "seconds": math.floor(seconds)}
                warnings.append(Warn(HOLDS_UP, fields))
        return warnings
