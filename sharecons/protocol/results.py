"""What became of acknowledgements, and who is told.

Rule 1: how an outcome looks to the application is said here.
Rule 2: this file does not know how it came about; `acknowledgements` does.
"""

from collections.abc import Iterable, Sequence
from typing import Final, final

from sharecons.protocol.journal import AcknowledgeError, AcknowledgeResult
from sharecons.protocol.leases import Lease
from sharecons.protocol.ranges import GAP, Run
from sharecons.untyped import AcknowledgeType

__all__ = ["Ticket", "join_results", "results_of"]


# By number: asking the enumeration takes longer than all else here.
_TYPES: Final = {kind.value: kind for kind in AcknowledgeType}


def results_of(
    lease: Lease, runs: Iterable[Run], error: AcknowledgeError | None
) -> list[AcknowledgeResult]:
    """Say what became of runs of a lease; gaps are nobody's concern."""
    partition = lease.share_partition.partition
    return [
        AcknowledgeResult(lease.topic, partition, first, last, _TYPES[kind], error)
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
class Ticket:
    """What one commit() waits for."""

    __slots__ = ("results", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self.results: list[AcknowledgeResult] = []

    @property
    def done(self) -> bool:
        return self.waiting == 0
