"""ShareFetch and ShareAcknowledge, requests and responses, with the KIP's names.

Times are seconds. `sharecons.wire` encodes and decodes the messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sharecons.protocol.partitions import Endpoint, PartitionLeader, SharePartition

__all__ = [
    "Acknowledgements",
    "PartitionResponse",
    "Range",
    "ShareAcknowledge",
    "ShareAcknowledgeResponse",
    "ShareFetch",
    "ShareFetchResponse",
]


class Range(NamedTuple):
    """Offsets to acknowledge, both ends included (KIP-932, "AcknowledgementBatch").

    `kinds` holds one acknowledge type for all offsets, or one per offset.
    """

    first_offset: int
    last_offset: int
    kinds: bytes


Acknowledgements = Mapping[SharePartition, tuple[Range, ...]]


# The classes of each ShareFetch have explicit constructors: mypyc does not compile the
# constructors of dataclasses and named tuples, and they took a twelfth of the time of a
# record that is fetched alone.


@dataclass(init=False, slots=True)
class ShareFetch:
    """A ShareFetch request; `share_session_epoch` 0 opens a session.

    `added` and `forgotten` change the session's partitions. The broker also adds a
    partition with acknowledgements, unless the same request forgets it.
    """

    group_id: str
    member_id: str
    share_session_epoch: int
    max_wait: float
    min_bytes: int
    max_bytes: int
    max_records: int
    record_limit: bool
    added: frozenset[SharePartition]
    forgotten: frozenset[SharePartition]
    acknowledgements: Acknowledgements

    def __init__(
        self,
        *,
        group_id: str,
        member_id: str,
        share_session_epoch: int,
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        max_records: int,
        record_limit: bool,
        added: frozenset[SharePartition],
        forgotten: frozenset[SharePartition],
        acknowledgements: Acknowledgements,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait = max_wait
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.record_limit = record_limit
        self.added = added
        self.forgotten = forgotten
        self.acknowledgements = acknowledgements


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledge:
    """`share_session_epoch` -1 closes the session and releases its records."""

    group_id: str
    member_id: str
    share_session_epoch: int
    is_renew_ack: bool
    acknowledgements: Acknowledgements


@dataclass(init=False, slots=True)
class PartitionResponse:
    """One partition of a response; fetch and acknowledgement have separate errors.

    `acquired` are ranges of first offset, last offset and delivery count. In a
    ShareAcknowledge response the fields of the fetch are empty.
    """

    share_partition: SharePartition
    error: int
    message: str | None
    acknowledge_error: int
    acknowledge_message: str | None
    leader: PartitionLeader
    records: bytes | memoryview
    acquired: tuple[tuple[int, int, int], ...]

    def __init__(
        self,
        share_partition: SharePartition,
        error: int,
        message: str | None,
        acknowledge_error: int,
        acknowledge_message: str | None,
        leader: PartitionLeader,
        records: bytes | memoryview,
        acquired: tuple[tuple[int, int, int], ...],
    ) -> None:
        self.share_partition = share_partition
        self.error = error
        self.message = message
        self.acknowledge_error = acknowledge_error
        self.acknowledge_message = acknowledge_message
        self.leader = leader
        self.records = records
        self.acquired = acquired


@dataclass(init=False, slots=True)
class ShareFetchResponse:
    error: int
    message: str | None
    lock_timeout: float
    renewable: bool
    partitions: tuple[PartitionResponse, ...]
    endpoints: Mapping[int, Endpoint]
    throttle: float

    def __init__(
        self,
        *,
        error: int,
        message: str | None,
        lock_timeout: float,
        renewable: bool,
        partitions: tuple[PartitionResponse, ...],
        endpoints: Mapping[int, Endpoint],
        throttle: float,
    ) -> None:
        self.error = error
        self.message = message
        self.lock_timeout = lock_timeout
        self.renewable = renewable
        self.partitions = partitions
        self.endpoints = endpoints
        self.throttle = throttle


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledgeResponse:
    error: int
    message: str | None
    lock_timeout: float
    partitions: tuple[PartitionResponse, ...]
    endpoints: Mapping[int, Endpoint]
    throttle: float
