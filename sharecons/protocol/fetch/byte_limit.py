"""How many bytes a fetch requests.

A broker divides the bytes evenly among the fetched partitions, and reads the header of
each batch in a partition's part, even if a few batches have all the records that it
returns. With 8 MiB and batches of ten records, that was half of the broker's CPU time
(docs/performance/2026-11-28/many-consumers.md). With 500 partitions, a part of 8 MiB is
one batch: a fetch of 2,000 records then had eighteen leases, a third more bytes than it
acquired, and took twice the CPU time.

So each partition can return all the records, and not much more.
"""

from typing import Final

from sharecons.protocol.fetch.prefetch import Prefetch

__all__ = ["MARGIN", "MIN_PART", "byte_limit"]

MAX_FACTOR: Final = 4
"""The maximum multiple of `max_bytes` requested for many partitions with small
records."""

MARGIN: Final = 2
"""The multiple of the expected bytes that one partition can return: the next records
can be larger than those before."""

MIN_PART: Final = 64 << 10
"""The minimum bytes of one partition's part: below that, reading fewer headers saves
little."""


def byte_limit(
    prefetch: Prefetch,
    *,
    records: int,
    partitions: int,
    min_bytes: int,
    max_bytes: int,
    backlog: bool,
) -> int:
    """Return how many bytes to request.

    A fetch without a backlog requests at least `max_bytes`. So if a part was too small,
    because its records are larger or were released between acquired ones, the next
    fetch has enough.

    Args:
        prefetch: has the sizes of records and batches.
        records: the requested records.
        partitions: how many partitions are fetched.
        min_bytes: the bytes for which the fetch waits; one part can have all of them.
        max_bytes: the application's limit.
        backlog: the last fetch returned about as many records as requested.
    """
    expected = records * int(prefetch.batches.record_size)
    if expected > max_bytes:
        return max_bytes
    enough = min(partitions * expected, MAX_FACTOR * max_bytes)
    part = max(MARGIN * prefetch.expected_bytes(records), MIN_PART, min_bytes)
    most = min(partitions * part, max_bytes) if backlog else max_bytes
    return max(enough, most)
