"""Requests and responses of a member: its coordinator, heartbeats, and metadata.

Plain values with the KIP's names; times are seconds. `sharecons.wire` encodes and
decodes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sharecons.protocol.partitions import (
    Endpoint,
    PartitionLeader,
    SharePartition,
    TopicId,
)

__all__ = [
    "JOIN_EPOCH",
    "LEAVE_EPOCH",
    "FindCoordinator",
    "FindCoordinatorResponse",
    "Heartbeat",
    "HeartbeatResponse",
    "MetadataRequest",
    "MetadataResponse",
    "TopicDescription",
]

JOIN_EPOCH = 0
LEAVE_EPOCH = -1


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
    cluster_id: str | None = None
