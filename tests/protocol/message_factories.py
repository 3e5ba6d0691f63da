"""Factories of messages for the tests of state machines."""

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.protocol.partitions import Endpoint, PartitionLeader, SharePartition
from sharecons.protocol.share_messages import (
    PartitionResponse,
    Range,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)

__all__ = [
    "NODE_ID",
    "NO_LEADER",
    "P0",
    "P1",
    "P2",
    "SETTINGS",
    "TOPIC",
    "TOPIC_ID",
    "acknowledge_response",
    "acks_by_offset",
    "batch_bytes",
    "fetch_response",
    "partition_response",
]

TOPIC: Final = "orders"
TOPIC_ID: Final = bytes([7] * 16)
P0: Final = SharePartition(TOPIC_ID, 0)
P1: Final = SharePartition(TOPIC_ID, 1)
P2: Final = SharePartition(TOPIC_ID, 2)
NODE_ID: Final = 1
NO_LEADER: Final = PartitionLeader(-1, -1)

SETTINGS: Final = FetchSettings(
    group_id="billing",
    member_id="AAAAAAAAAAAAAAAAAAAAAA",
    max_wait=0.5,
    min_bytes=1,
    max_bytes=1 << 20,
    max_records=500,
    record_limit=False,
)


def partition_response(
    share_partition: SharePartition,
    *acquired: tuple[int, int],
    error: int = 0,
    message: str | None = None,
    acknowledge_error: int = 0,
    acknowledge_message: str | None = None,
    leader: PartitionLeader = NO_LEADER,
    delivery_count: int = 1,
    records: bytes = b"",
) -> PartitionResponse:
    """Return one partition of a response; `acquired` are first and last offsets."""
    return PartitionResponse(
        share_partition=share_partition,
        error=error,
        message=message,
        acknowledge_error=acknowledge_error,
        acknowledge_message=acknowledge_message,
        leader=leader,
        records=records,
        acquired=tuple((first, last, delivery_count) for first, last in acquired),
    )


def batch_bytes(records: int, record_size: int = 1000, base_offset: int = 0) -> bytes:
    """Return a batch as the client measures it: a header and padding."""
    size = records * record_size
    header = struct.pack(
        ">qiibIHiqqqhii",
        base_offset,
        size - 12,
        0,
        2,
        0,
        0,
        records - 1,
        0,
        0,
        -1,
        -1,
        -1,
        records,
    )
    return header.ljust(size, b"\0")


def fetch_response(
    *partitions: PartitionResponse,
    error: int = 0,
    message: str | None = None,
    lock_timeout: float = 30.0,
    renewable: bool = True,
    endpoints: Mapping[int, Endpoint] | None = None,
    throttle: float = 0.0,
) -> ShareFetchResponse:
    return ShareFetchResponse(
        error=error,
        message=message,
        lock_timeout=lock_timeout,
        renewable=renewable,
        partitions=partitions,
        endpoints=endpoints or {},
        throttle=throttle,
    )


def acknowledge_response(
    *partitions: PartitionResponse,
    error: int = 0,
    message: str | None = None,
    lock_timeout: float = 0.0,
    endpoints: Mapping[int, Endpoint] | None = None,
    throttle: float = 0.0,
) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(
        error=error,
        message=message,
        lock_timeout=lock_timeout,
        partitions=partitions,
        endpoints=endpoints or {},
        throttle=throttle,
    )


def acks_by_offset(ranges: Iterable[Range]) -> dict[int, int]:
    """Return the acknowledge type of each offset in ranges."""
    kinds: dict[int, int] = {}
    for first, last, each in ranges:
        size = last - first + 1
        spread = each * size if len(each) == 1 else each
        kinds.update(zip(range(first, last + 1), spread, strict=True))
    return kinds
