"""The records that are being written to another topic, and when a write is repeated.

A record is accepted only after its copy is confirmed. A copy that was not written is
written again until it is. Meanwhile the record is held, so that nothing is lost.
"""

from collections.abc import Iterator
from typing import Final, final

from sharecons.worker.machine.actions import Copy
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.outcomes import DeadLettered, Moved

__all__ = ["Copies", "repeated"]

FIRST_REPEAT: Final = 1.0
MAX_REPEAT: Final = 30.0
"""Seconds until a copy that could not be written is written again."""

MAX_DOUBLINGS: Final = 10


@final
class Copies:
    """The copies of one worker that are not confirmed."""

    def __init__(self) -> None:
        self._outcomes: dict[WorkItem, Moved | DeadLettered] = {}

    def __contains__(self, item: WorkItem) -> bool:
        return item in self._outcomes

    def __iter__(self) -> Iterator[WorkItem]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    @property
    def dead_letter_count(self) -> int:
        """How many of them are dead letters; any thread can read this."""
        outcomes = list(self._outcomes.values())
        return sum(isinstance(outcome, DeadLettered) for outcome in outcomes)

    def start(self, item: WorkItem, outcome: Moved | DeadLettered) -> Copy:
        """Return the action for a copy; it replaces an earlier one of the record."""
        self._outcomes[item] = outcome
        return Copy(item, outcome)

    def outcome_of(self, item: WorkItem) -> Moved | DeadLettered | None:
        """Return which copy is being written, or None."""
        return self._outcomes.get(item)

    def is_current(self, copy: Copy) -> bool:
        """Return whether a copy is still to be written."""
        # By identity: a record that was moved can be moved to the same topic again.
        return self._outcomes.get(copy.item) is copy.outcome

    def discard(self, item: WorkItem) -> None:
        """Forget the copy of a record, if there is one."""
        self._outcomes.pop(item, None)

    def take_all(self) -> dict[WorkItem, Moved | DeadLettered]:
        """Return all copies, and forget them."""
        outcomes, self._outcomes = self._outcomes, {}
        return outcomes


def repeated(copy: Copy) -> Copy:
    """Return the action that writes a copy again, after a delay that doubles."""
    doublings = min(copy.failures, MAX_DOUBLINGS)
    after = min(FIRST_REPEAT * 2**doublings, MAX_REPEAT)
    return copy._replace(failures=copy.failures + 1, after=after)
