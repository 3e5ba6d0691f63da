"""The oldest unsettled record of each partition."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.inspection.diagnosis.offset_states import UNSETTLED, OffsetRange, Oldest
from sharecons.protocol.log_reader.log_slice import LogSlice

__all__ = ["oldest_records"]

FIRST_MAX_BYTES: Final = 64 << 10
"""Bytes per partition; if the first batch is larger, the next try has more."""

MAX_TRIES: Final = 5
"""Each try has eight times the bytes of the one before; the last is more than the
largest batch that brokers accept by default. Tries are also needed if the records at
the first offsets were compacted."""


@dataclass(slots=True)
class _Search:
    wanted: Sequence[OffsetRange]
    offset: int


async def oldest_records(
    admin: ShareGroupAdmin, ranges: Mapping[TopicPartition, Sequence[OffsetRange]]
) -> dict[TopicPartition, Oldest]:
    """Read the first unsettled record of each partition.

    Partitions that are settled, or whose record cannot be read, are left out.
    """
    found: dict[TopicPartition, Oldest] = {}
    searches = {
        key: _Search(wanted, wanted[0].first_offset)
        for key, each in ranges.items()
        if (wanted := [one for one in each if one.status in UNSETTLED])
    }
    max_bytes = FIRST_MAX_BYTES
    for _ in range(MAX_TRIES):
        if not searches:
            break
        offsets = {key: search.offset for key, search in searches.items()}
        slices = (await admin.read_log(offsets, max_bytes=max_bytes)).found
        for key in tuple(searches):
            if key not in slices or _search(searches[key], slices[key], key, found):
                del searches[key]
        max_bytes *= 8
    return found


def _search(
    search: _Search,
    log_slice: LogSlice,
    key: TopicPartition,
    found: dict[TopicPartition, Oldest],
) -> bool:
    """Search a slice; return True if the search has ended."""
    for record in log_slice.records:
        if _is_wanted(search.wanted, record.offset):
            found[key] = Oldest(offset=record.offset, timestamp=record.timestamp)
            return True
    search.offset = log_slice.next_offset
    return log_slice.next_offset > search.wanted[-1].last_offset


def _is_wanted(wanted: Sequence[OffsetRange], offset: int) -> bool:
    index = bisect_right(wanted, offset, key=lambda each: each.first_offset) - 1
    return index >= 0 and offset <= wanted[index].last_offset
