"""The first and the last offsets of logs."""

from collections.abc import Iterable

from sharecons._record import TopicPartition
from sharecons.admin.client import ShareGroupAdmin
from sharecons.protocol.admin.models import LogBounds, OffsetSpec
from sharecons.protocol.admin.results import Result, Results

__all__ = ["log_bounds"]


async def log_bounds(
    admin: ShareGroupAdmin, partitions: Iterable[TopicPartition]
) -> Results[TopicPartition, LogBounds]:
    """Look up the bounds of the partitions' logs.

    Raises:
        Error: no broker can be reached.
    """
    keys = tuple(partitions)
    if not keys:
        return Results({})
    # The start can move in between, but then it is not above the end.
    starts = await admin.list_offsets(keys, OffsetSpec.EARLIEST)
    # Without the others: waiting for their leaders a second time would take too long.
    found = starts.found
    ends = await admin.list_offsets(tuple(found), OffsetSpec.LATEST) if found else {}

    def bounds(key: TopicPartition) -> Result[LogBounds]:
        end = ends.get(key, starts[key])
        if end.error is not None:
            return Result(error=end.error)
        return Result(LogBounds(found[key].offset or 0, end.value.offset or 0))

    return Results({key: bounds(key) for key in keys})
