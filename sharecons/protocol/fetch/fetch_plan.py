"""The contents of a fetch: `fetch_control` decides, `request_builder` sends them."""

from typing import NamedTuple

from sharecons.protocol.partitions import SharePartition

__all__ = ["FetchPlan"]


class FetchPlan(NamedTuple):
    """The contents of the next fetch.

    Attributes:
        partitions: the partitions of the session after it.
        max_wait: seconds that it can wait at the broker.
        min_bytes, max_bytes: how many bytes it waits for, and the maximum.
        max_records: the maximum number of records.
        record_limit: the maximum is exact (KIP-1206); otherwise whole batches.
    """

    partitions: frozenset[SharePartition]
    max_wait: float
    min_bytes: int
    max_bytes: int
    max_records: int
    record_limit: bool
