"""The request and response of a plain Fetch.

Rule 1: plain values with Kafka's names, in seconds and bytes.
Rule 2: independent of share groups; records read like this are not locked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sharecons.protocol.partitions import SharePartition

__all__ = ["Fetch", "FetchPosition", "Fetched", "FetchedPartition"]


class FetchPosition(NamedTuple):
    """The part of a request for one partition.

    With `leader_epoch`, a broker that is no longer the leader returns an error. A
    lagging follower would instead report an offset beyond its log.
    """

    leader_epoch: int
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """A fetch without a session; `committed` excludes aborted transactions."""

    max_wait: float
    min_bytes: int
    max_bytes: int
    committed: bool
    partitions: Mapping[SharePartition, FetchPosition]


class FetchedPartition(NamedTuple):
    """The part of a response for one partition.

    `aborted` has the producer id and first offset of aborted transactions. `records`
    are the log's batches; the last one can be incomplete.
    """

    share_partition: SharePartition
    error: int
    high_watermark: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]
    records: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    error: int
    partitions: tuple[FetchedPartition, ...]
    throttle: float
