"""What administration tells: groups, offsets, configs, topics, the cluster.

Rule 1: these are plain values with the KIP's names; None where Kafka has -1.
Rule 2: nothing here knows how they look on the wire, or how they were asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.protocol.messages import Endpoint
from sharecons.protocol.open_enum import OpenEnum

__all__ = [
    "UNKNOWN_BROKER",
    "Broker",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigEntry",
    "ConsumerGroup",
    "ConsumerMember",
    "DeliveryState",
    "FeatureRange",
    "Features",
    "GroupListing",
    "GroupOffset",
    "ListedGroup",
    "LogOffset",
    "OffsetSpec",
    "ShareGroup",
    "ShareMember",
    "SharePartitionState",
    "StateBatch",
    "StateSummary",
    "Topic",
    "TopicPartitionInfo",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker of the cluster; a fenced one is known but serves nobody."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    fenced: bool = False

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)

    def __str__(self) -> str:
        return f"{self.endpoint} (node {self.node_id})"


UNKNOWN_BROKER: Final = Broker(node_id=-1, host="", port=-1)
"""Stands for a coordinator until who asked it writes itself in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    """A group as a listing names it.

    `state` as Kafka spells it ("Stable", "Empty"); `group_type` in lower case
    ("share", "consumer", "classic", "streams"); `protocol` what it was joined with.
    """

    group_id: str
    state: str
    group_type: str
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """Groups by id; `errors` names the brokers that did not list theirs, and why."""

    groups: Mapping[str, ListedGroup]
    errors: Mapping[int, Error] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember:
    """A member of a share group."""

    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack: str | None
    subscription: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroup:
    """A share group as its coordinator describes it.

    `state` is "Empty", "Stable" or "Dead"; `assignor` is empty where no member ever
    was. `authorized_operations` (as "READ", "DESCRIBE") is None if not asked for.
    """

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareMember, ...]
    coordinator: Broker = UNKNOWN_BROKER
    authorized_operations: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """A member of a consumer group, classic or new."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    subscription: tuple[str, ...]
    """Known of new groups only."""
    assignment: tuple[TopicPartition, ...]
    """Empty where the group's protocol is not "consumer"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """A consumer group; `group_type` is "classic" or "consumer" (KIP-848)."""

    group_id: str
    group_type: str
    state: str
    assignor: str
    members: tuple[ConsumerMember, ...]
    coordinator: Broker = UNKNOWN_BROKER
    authorized_operations: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """Where a share group stands in a partition (KIP-932, KIP-1226).

    All are None for a partition that the group has not begun to read; `lag` alone
    where it cannot be told: then use `ShareGroupAdmin.list_offsets`.
    """

    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """What a consumer group committed: the next offset that it would read."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSpec:
    """Which offset of a partition's log is meant, as in Kafka's ListOffsets.

    `OffsetSpec.EARLIEST`, `.LATEST` (the next to be written; with `read_committed`
    the last stable one), `.MAX_TIMESTAMP` (of the record with the highest timestamp),
    or `OffsetSpec.at(time)`: the first record with this timestamp or a later one.
    """

    timestamp: int
    """Milliseconds since the epoch, as records have it; negative ones are special."""

    EARLIEST: ClassVar["OffsetSpec"]
    LATEST: ClassVar["OffsetSpec"]
    MAX_TIMESTAMP: ClassVar["OffsetSpec"]

    @classmethod
    def at(cls, time: datetime | float) -> "OffsetSpec":
        """Mean a time: a datetime (without a zone: local) or seconds since 1970."""
        seconds = time.timestamp() if isinstance(time, datetime) else time
        return cls(timestamp=max(0, round(seconds * 1000)))


OffsetSpec.LATEST = OffsetSpec(timestamp=-1)
OffsetSpec.EARLIEST = OffsetSpec(timestamp=-2)
OffsetSpec.MAX_TIMESTAMP = OffsetSpec(timestamp=-3)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffset:
    """An offset of a log; None where there is no such record.

    `timestamp` is that record's, in milliseconds; None for earliest and latest.
    """

    offset: int | None
    timestamp: int | None
    leader_epoch: int | None


class DeliveryState(OpenEnum):
    """How it stands with a record of a share-partition (KIP-932); the wire's numbers.

    Locks are kept by the leader in memory alone: what is locked is AVAILABLE here.
    A number that is not listed comes from a newer broker. It becomes a value named
    UNKNOWN_<number>, with `is_known` False.
    """

    AVAILABLE = 0
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """A dead letter is being written (KIP-1191, Kafka 4.4); ARCHIVED afterwards."""
    ARCHIVED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBatch:
    """Neighbouring offsets with one state and delivery count; both ends included."""

    first_offset: int
    last_offset: int
    state: DeliveryState
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionState:
    """What the share coordinator keeps of a share-partition.

    `start_offset` is None where the group has not begun. Batches are in order and
    may have gaps; offsets above the last were never delivered, or are locked for the
    first time.
    """

    start_offset: int | None
    state_epoch: int
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSummary:
    """The outline of a share-partition's state.

    `delivery_complete_count` counts offsets from the start offset on that are
    acknowledged or archived; None before Kafka 4.2.
    """

    start_offset: int | None
    state_epoch: int
    leader_epoch: int
    delivery_complete_count: int | None


_OWN_SOURCES: Final = (
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_GROUP_CONFIG",
    "DYNAMIC_TOPIC_CONFIG",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """A config's value, None if it is sensitive or not set.

    `source` is Kafka's name: "DYNAMIC_GROUP_CONFIG" where it was set for the group,
    "DEFAULT_CONFIG", "STATIC_BROKER_CONFIG" and so on.
    """

    name: str
    value: str | None
    source: str
    read_only: bool = False
    sensitive: bool = False
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """True unless it was set for this very group, broker or topic."""
        return self.source not in _OWN_SOURCES


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionInfo:
    """A partition's leader (None: nobody leads just now) and replicas, by node id."""

    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic; `topic_id` in sixteen bytes."""

    name: str
    topic_id: bytes
    internal: bool
    partitions: Mapping[int, TopicPartitionInfo]
    authorized_operations: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The cluster; `controller` is the broker that controller requests are sent to."""

    cluster_id: str
    controller_id: int | None
    brokers: Mapping[int, Broker]
    authorized_operations: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRange:
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What one broker speaks: features by name ("share.version"), APIs by key.

    `finalized` is what is switched on for the cluster (`highest` counts), `supported`
    what this broker could do.
    """

    finalized: Mapping[str, FeatureRange]
    supported: Mapping[str, FeatureRange]
    apis: Mapping[int, FeatureRange]

    @property
    def share_version(self) -> int:
        """The finalized `share.version`; 0 is off."""
        found = self.finalized.get("share.version")
        return 0 if found is None else found.highest
