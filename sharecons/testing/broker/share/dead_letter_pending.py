"""Records that wait to be written to a dead letter topic (KIP-1191).

A record that was rejected, or delivered too often, is archiving until its copy is in
the group's dead letter topic, or cannot be written. If the topic's partition has no
leader, Kafka tries five times in half a minute.
"""

from dataclasses import dataclass, replace
from typing import Final

from sharecons.testing.broker.share.in_flight import InFlightBatch, Run

__all__ = ["DeadLetterPending"]

AT_ONCE: Final = float("-inf")
PAUSES: Final = (2.0, 4.0, 8.0, 16.0)
"""Seconds between two tries; Kafka varies each randomly by up to a fifth."""


@dataclass(frozen=True, slots=True)
class DeadLetterPending:
    """Neighbours of one batch that share a delivery and wait to be archived."""

    batch: InFlightBatch
    run: Run
    tries: int = 0
    due_at: float = AT_ONCE

    def next_try(self, now: float) -> "DeadLetterPending | None":
        """Return the record with the time of the next try; None after the last one.

        Tries whose time has passed count as made.
        """
        due = now if self.due_at == AT_ONCE else self.due_at
        for tries, pause in enumerate(PAUSES[self.tries :], self.tries + 1):
            due += pause
            if due > now:
                return replace(self, tries=tries, due_at=due)
        return None
