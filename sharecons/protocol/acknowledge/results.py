"""Acknowledgement results, as the application receives them."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sharecons._record import AcknowledgeType
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.positions import (
    OffsetRange,
    count_offsets,
    ranges_text,
)
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
)
from sharecons.protocol.acknowledge.runs import GAP, Run

__all__ = ["join_results", "results_of", "summarize"]


# By number: a call of the enumeration would take most of the time here.
_TYPES: Final = {kind.value: kind for kind in AcknowledgeType}


def results_of(
    lease: Lease, runs: Iterable[Run], error: AcknowledgeFailure | None
) -> list[AcknowledgeResult]:
    """Return the results of runs, without gaps and failures of `Lease.give_back`."""
    reported = math.inf if error is None else lease.given_back_from
    partition = lease.share_partition.partition
    return [
        AcknowledgeResult(lease.topic, partition, first, last, _TYPES[kind], error)
        for first, last, kind in runs
        if kind != GAP and first < reported
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


def summarize(failed: Sequence[AcknowledgeResult]) -> dict[str, Any]:
    """Return log fields for failed acknowledgements; the error is the first one's."""
    first = min(failed, key=lambda result: result[:3])
    ranges = [OffsetRange(*result[:4]) for result in failed]
    assert first.error is not None, "failed"
    fields: dict[str, Any] = {
        "records": count_offsets(ranges),
        "positions": ranges_text(ranges),
        "error": first.error.name,
    }
    if first.error.message:
        fields["reason"] = first.error.message
    return fields
