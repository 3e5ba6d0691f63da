"""Reads the oldest records of groups, if they are others than before."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.group_state.assemble import with_found, with_unchanged_since
from sharecons.group_state.gather import failed, run_all
from sharecons.group_state.group_facts import reads_committed
from sharecons.group_state.group_states import GroupState, Unread
from sharecons.group_state.reading_errors import Errors
from sharecons.group_state.record_search import (
    FoundRecords,
    RecordSearch,
    continued,
    joined,
)

__all__ = ["with_records"]

FIRST_MAX_BYTES: Final = 64 << 10
"""Bytes per partition; if the first batch is larger, the next try has more."""

MAX_TRIES: Final = 5
"""Each try has eight times the bytes of the one before; the last is more than the
largest batch that brokers accept by default. Tries are also needed if the records at
the first offsets were compacted."""

MAX_BYTES: Final = 8 << 20
"""Bytes of one response: partitions of a request with more would return nothing."""

Place = tuple[str, TopicPartition]
"""A group, and a partition of it."""


async def with_records(
    admin: ShareGroupAdmin,
    groups: Mapping[str, GroupState],
    before: Mapping[str, GroupState],
    errors: Errors,
    *,
    with_gaps: bool,
) -> dict[str, GroupState]:
    """Add the oldest records, and since when states are unchanged."""
    known = {
        (group_id, key): one
        for group_id, group in before.items()
        for key, one in group.partitions.items()
    }
    searches: dict[Place, RecordSearch] = {}
    for group_id, group in groups.items():
        committed = reads_committed(group.configs or {})
        for key, one in group.partitions.items():
            wanted = one.unsettled
            earlier = known.get((group_id, key))
            # An earlier search cannot have seen the gaps of now.
            if earlier is not None and not with_gaps:
                wanted = tuple(continued(earlier.search, wanted))
            if wanted:
                searches[group_id, key] = RecordSearch(
                    wanted, committed=committed, with_gaps=with_gaps
                )
    found, unread = await _find_records(admin, searches, errors)
    at = time.time()
    complete: dict[str, GroupState] = {}
    for group_id, group in groups.items():
        partitions = {}
        for key, one in group.partitions.items():
            place = group_id, key
            earlier = known.get(place)
            search = None if earlier is None or with_gaps else earlier.search
            now = with_found(one, joined(search, found.get(place), one.unsettled))
            if place in unread:
                now = replace(
                    now, unread={**now.unread, "records": Unread(unread[place])}
                )
            partitions[key] = with_unchanged_since(now, earlier, at)
        complete[group_id] = replace(group, partitions=partitions)
    return complete


async def _find_records(
    admin: ShareGroupAdmin, searches: dict[Place, RecordSearch], errors: Errors
) -> tuple[dict[Place, FoundRecords], dict[Place, Error]]:
    """Search each partition up to its first unsettled record."""
    found: dict[Place, FoundRecords] = {}
    unread: dict[Place, Error] = {}
    max_bytes = FIRST_MAX_BYTES

    async def read(places: Mapping[TopicPartition, Place]) -> None:
        searched = {key: searches[place] for key, place in places.items()}
        try:
            slices = await admin.read_log(
                {key: search.offset for key, search in searched.items()},
                max_bytes=max_bytes,
                read_committed=any(each.committed for each in searched.values()),
            )
        except Error as error:
            errors.add("records", [error])
            slices = failed(places, error)
        for key, place in places.items():
            if (reason := slices[key].error) is not None:
                unread[place] = reason
                del searches[place]
                continue
            if searches[place].add(slices[key].value):
                del searches[place]
            found[place] = searched[key].result()

    for _ in range(MAX_TRIES):
        size = max(1, MAX_BYTES // max_bytes)
        await run_all(read, list(_requests(searches, size)))
        max_bytes *= 8
    return found, unread


def _requests(
    searches: Mapping[Place, RecordSearch], size: int
) -> Iterable[Mapping[TopicPartition, Place]]:
    """Divide searches into requests, in which each partition is once at most."""
    turns: Counter[tuple[bool, TopicPartition]] = Counter()
    requests: dict[tuple[bool, int], list[Place]] = {}
    for place, search in searches.items():
        each = search.committed, place[1]
        requests.setdefault((search.committed, turns[each]), []).append(place)
        turns[each] += 1
    for places in requests.values():
        for first in range(0, len(places), size):
            yield {place[1]: place for place in places[first : first + size]}
