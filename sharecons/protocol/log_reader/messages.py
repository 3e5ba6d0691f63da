"""What is said and heard when a log is read again by offset: plain Fetch.

Rule 1: these are plain values with Kafka's names, in seconds and bytes.
Rule 2: nothing here knows of share groups; who reads so has no locks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sharecons.protocol.messages import SharePartition

__all__ = ["Fetch", "FetchPosition", "Fetched", "FetchedPartition"]


class FetchPosition(NamedTuple):
    """Where one partition is to be read.

    `leader_epoch` has a broker say so if it is not the leader that we take it for: a
    follower that lags would take an offset of ours for one beyond the log.
    """

    leader_epoch: int
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """A fetch without a session; `committed` leaves aborted transactions out."""

    max_wait: float
    min_bytes: int
    max_bytes: int
    committed: bool
    partitions: Mapping[SharePartition, FetchPosition]


class FetchedPartition(NamedTuple):
    """One partition's part of the answer.

    `aborted` are producer id and first offset of transactions that were aborted.
    `records` are batches as they lie in the log, the last perhaps cut off.
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
