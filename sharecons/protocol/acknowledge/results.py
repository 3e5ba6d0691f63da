"""Acknowledgement results, as the application receives them."""

from collections.abc import Iterable, Sequence
from typing import Final, final

from sharecons._record import RELEASE, AcknowledgeType
from sharecons.protocol.acknowledge.ack_states import GAP, Run
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
    LastRelease,
)

__all__ = [
    "CommitWaiter",
    "archived_by",
    "join_results",
    "lock_overrun",
    "results_of",
    "summarize",
]


# By number: a call of the enumeration would take most of the time here.
_TYPES: Final = {kind.value: kind for kind in AcknowledgeType}


def results_of(
    lease: Lease, runs: Iterable[Run], error: AcknowledgeFailure | None
) -> list[AcknowledgeResult]:
    """Return the results of runs of a lease, without gaps."""
    partition = lease.share_partition.partition
    return [
        AcknowledgeResult(lease.topic, partition, first, last, _TYPES[kind], error)
        for first, last, kind in runs
        if kind != GAP
    ]


def archived_by(
    lease: Lease, runs: Iterable[Run], delivery_limit: int
) -> list[LastRelease]:
    """Return the releases among these runs that archived records.

    Releasing a record on its last delivery archives it.

    Args:
        delivery_limit: the group's limit; 0 if it is not known.
    """
    if not 0 < delivery_limit <= lease.highest_delivery_count:
        return []
    partition = lease.share_partition.partition
    spent = [each for each in lease.acquired if each[2] >= delivery_limit]
    return [
        LastRelease(lease.topic, partition, max(first, begin), min(last, end), count)
        for first, last, kind in runs
        for begin, end, count in spent
        if kind == RELEASE and max(first, begin) <= min(last, end)
    ]


def join_results(results: Sequence[AcknowledgeResult]) -> list[AcknowledgeResult]:
    """Sort results, and join adjacent ranges with the same type and error."""
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


def lock_overrun(lease: Lease, deadline: float, now: float) -> str:
    """Return the error message for a lock that expired before its acknowledgement."""
    seconds = now - deadline + lease.lock_duration
    return (
        f"processing took {_short(seconds)} s, the lock lasts "
        f"{_short(lease.lock_duration)} s: {lease.result_log.advice}"
    )


def summarize(failed: Sequence[AcknowledgeResult]) -> dict[str, object]:
    """Return log fields for failed acknowledgements: a count, and the first of them."""
    first = failed[0]
    assert first.error is not None, "failed"
    offsets = f"{first.first_offset}-{first.last_offset}"
    fields: dict[str, object] = {
        "records": sum(r.last_offset - r.first_offset + 1 for r in failed),
        "first": f"{first.topic}-{first.partition}, offsets {offsets}",
        "error": first.error.name,
    }
    if first.error.message:
        fields["reason"] = first.error.message
    return fields


def _short(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10.0 else f"{round(seconds, 1):g}"


@final
class CommitWaiter:
    """The acknowledgement batches that one commit() waits for."""

    __slots__ = ("outstanding", "results")

    def __init__(self) -> None:
        self.outstanding = 0
        self.results: list[AcknowledgeResult] = []

    @property
    def is_done(self) -> bool:
        return self.outstanding == 0
