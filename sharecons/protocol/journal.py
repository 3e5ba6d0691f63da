"""The journal of one consumer: what became of what it said, and whether it still may.

Rule: this file knows nothing of leases, which ask it before they take a word.
"""

from collections.abc import Callable
from typing import NamedTuple, final

from sharecons.untyped import AcknowledgeType

__all__ = ["AcknowledgeError", "AcknowledgeResult", "Journal"]


class AcknowledgeError(NamedTuple):
    """Why an acknowledgement was not applied: Kafka's code, name and words."""

    code: int
    name: str
    message: str


class AcknowledgeResult(NamedTuple):
    """What became of a range of acknowledged records; `error` of None is success.

    An error means that the records were not settled, or that nobody knows: they
    may be delivered again.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    type: AcknowledgeType
    error: AcknowledgeError | None


@final
class Journal:
    """What the acknowledgements of one consumer, to all its leaders, have in common.

    Attributes:
        closed: nothing may be said any more.
        results: what became of acknowledgements; taken by the shell.
        hears: of those that were applied, too, though no commit() waits for them.
        applied: how many were of which nobody hears; taken by the shell.
    """

    __slots__ = ("applied", "closed", "hears", "results", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self.closed = False
        self.results: list[AcknowledgeResult] = []
        self.hears = True
        self.applied = 0
        self.wake = wake
