"""Records that a group gives up, as long as they are still to be written elsewhere.

KIP-1191: a record that was rejected, or delivered too often, is archiving until a copy
of it is in the group's dead-letter topic, or cannot be. Where nobody leads the topic's
partition Kafka tries five times, for half a minute.
"""

from dataclasses import dataclass, replace
from typing import Final

from sharecons.testing.broker.share.in_flight import InFlight, Run

__all__ = ["DeadLetterPending"]

AT_ONCE: Final = float("-inf")
PAUSES: Final = (2.0, 4.0, 8.0, 16.0)
"""Seconds between two tries; Kafka makes each a fifth longer or shorter, by chance."""


@dataclass(frozen=True, slots=True)
class DeadLetterPending:
    """Neighbours in flight that share a delivery, and wait to be archived."""

    batch: InFlight
    run: Run
    tries: int = 0
    due: float = AT_ONCE

    def later(self, now: float) -> "DeadLetterPending | None":
        """Put off what could not be written; after the last try there is no later.

        Tries that nobody was there to make are over.
        """
        due = now if self.due == AT_ONCE else self.due
        for tries, pause in enumerate(PAUSES[self.tries :], self.tries + 1):
            due += pause
            if due > now:
                return replace(self, tries=tries, due=due)
        return None
