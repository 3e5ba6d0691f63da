"""What became of acknowledgements, and who is told.

Rule 1: how an outcome looks to the application is said here.
Rule 2: this file does not know how it came about; `acknowledgements` does.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, final

from sharecons.protocol.leases import Lease
from sharecons.protocol.ranges import GAP, Run
from sharecons.untyped import AcknowledgeType

__all__ = [
    "AcknowledgeError",
    "AcknowledgeResult",
    "Journal",
    "Ticket",
    "join_results",
    "results_of",
]


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


def results_of(
    lease: Lease, runs: Iterable[Run], error: AcknowledgeError | None
) -> list[AcknowledgeResult]:
    """Say what became of runs of a lease; gaps are nobody's concern."""
    partition = lease.share_partition.partition
    return [
        AcknowledgeResult(
            lease.topic, partition, first, last, AcknowledgeType(kind), error
        )
        for first, last, kind in runs
        if kind != GAP
    ]


def join_results(results: Sequence[AcknowledgeResult]) -> list[AcknowledgeResult]:
    """Sort results, and make one of neighbours with the same fate."""
    joined: list[AcknowledgeResult] = []
    for result in sorted(results, key=lambda result: result[:3]):
        before = joined[-1] if joined else None
        if (
            before is not None
            and before[:2] == result[:2]
            and before.last_offset + 1 == result.first_offset
            and before[4:] == result[4:]
        ):
            joined[-1] = before._replace(last_offset=result.last_offset)
        else:
            joined.append(result)
    return joined


@final
class Journal:
    """What the acknowledgements of one consumer, to all its leaders, have in common.

    Attributes:
        closed: nothing may be said any more.
        results: what became of acknowledgements; taken by the shell.
    """

    __slots__ = ("closed", "results", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self.closed = False
        self.results: list[AcknowledgeResult] = []
        self.wake = wake


@final
class Ticket:
    """What one commit() waits for."""

    __slots__ = ("results", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self.results: list[AcknowledgeResult] = []

    @property
    def done(self) -> bool:
        return self.waiting == 0
