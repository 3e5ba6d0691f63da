"""Requests and responses of the state machines, and their parts.

Plain values with the KIP's names; times are seconds. `sharecons.wire` encodes and
decodes them.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "JOIN_EPOCH",
    "LEAVE_EPOCH",
    "AlterGroupConfig",
    "AlterGroupConfigResponse",
    "DescribeGroupConfig",
    "DescribeGroupConfigResponse",
    "DescribeGroupConfigs",
    "DescribeGroupConfigsResponse",
    "Endpoint",
    "FetchSettings",
    "FindCoordinator",
    "FindCoordinatorResponse",
    "Heartbeat",
    "HeartbeatResponse",
    "MetadataRequest",
    "MetadataResponse",
    "PartitionLeader",
    "PartitionResponse",
    "Range",
    "ShareAcknowledge",
    "ShareAcknowledgeResponse",
    "ShareFetch",
    "ShareFetchResponse",
    "SharePartition",
    "TopicDescription",
    "TopicId",
]

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

TopicId = bytes
"""A topic's id as sixteen bytes. It is looked up for each partition of each response,
and hashing or sorting UUIDs takes ten times as long."""


class Endpoint(NamedTuple):
    """The host and port of a broker's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return (
            f"[{self.host}]:{self.port}"
            if ":" in self.host
            else f"{self.host}:{self.port}"
        )


class SharePartition(NamedTuple):
    """A partition, by topic id: a topic that is created again has another id."""

    topic_id: TopicId
    partition: int

    def __str__(self) -> str:
        # As in Kafka's logs.
        return f"{urlsafe_b64encode(self.topic_id).decode()[:22]}-{self.partition}"


class Range(NamedTuple):
    """Offsets to acknowledge, both ends included (KIP-932, "AcknowledgementBatch").

    `kinds` holds one acknowledge type for all offsets, or one per offset.
    """

    first_offset: int
    last_offset: int
    kinds: bytes


class PartitionLeader(NamedTuple):
    """A partition's leader and its epoch; a `leader_id` of -1 means no leader."""

    leader_id: int
    leader_epoch: int


Acknowledgements = Mapping[SharePartition, tuple[Range, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinator:
    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    error: int
    message: str | None
    node_id: int
    endpoint: Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """ShareGroupHeartbeat; `topics` and `rack` are None if unchanged."""

    group_id: str
    member_id: str
    member_epoch: int
    rack: str | None
    topics: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    """`assignment` is None if unchanged; an empty one revokes all partitions."""

    error: int
    message: str | None
    member_epoch: int
    heartbeat_interval: float
    assignment: frozenset[SharePartition] | None
    throttle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    """Metadata of topics by name and by id."""

    names: tuple[str, ...]
    ids: tuple[TopicId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    error: int
    name: str | None
    topic_id: TopicId | None
    leaders: Mapping[int, PartitionLeader]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse:
    brokers: Mapping[int, Endpoint]
    topics: tuple[TopicDescription, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupConfig:
    group_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupConfigResponse:
    """`is_set` is True for the group's own value, False for the brokers' default."""

    error: int
    message: str | None
    value: str | None
    is_set: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupConfigs:
    group_id: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupConfigsResponse:
    """`values` has the configs that the broker knows, by name."""

    error: int
    message: str | None
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterGroupConfig:
    group_id: str
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterGroupConfigResponse:
    error: int
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """The user's fetch settings, in seconds and bytes."""

    group_id: str
    member_id: str
    max_wait: float
    min_bytes: int
    max_bytes: int
    max_records: int
    record_limit: bool
