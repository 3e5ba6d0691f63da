"""Models of the admin client: groups, offsets, configs, topics, the cluster.

Rule 1: plain values with the KIP's names; None where Kafka has -1.
Rule 2: independent of the wire format and of the requests.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import ClassVar, Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.errors import ConfigurationError, Error
from sharecons.protocol.open_enum import OpenEnum
from sharecons.protocol.partitions import Endpoint

__all__ = [
    "UNKNOWN_BROKER",
    "Broker",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigEntry",
    "ConsumerGroup",
    "ConsumerGroupMember",
    "CreatedTopic",
    "DeliveryState",
    "FeatureRange",
    "Features",
    "GroupListing",
    "GroupOffset",
    "ListedGroup",
    "LogBounds",
    "LogOffset",
    "NewTopic",
    "OffsetSpec",
    "ShareGroup",
    "ShareGroupMember",
    "SharePartitionState",
    "StateBatch",
    "StateSummary",
    "Topic",
    "TopicPartitionInfo",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker of the cluster; a fenced one is registered but serves no requests."""

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
"""The coordinator in a description before the admin client has filled it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    """A group in a listing.

    `state` is Kafka's ("Stable", "Empty"), `group_type` is in lower case ("share",
    "consumer", "classic", "streams"), `protocol` is the protocol type of its members.
    """

    group_id: str
    state: str
    group_type: str
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """Groups by id; `errors` has the brokers whose groups could not be listed."""

    groups: Mapping[str, ListedGroup]
    errors: Mapping[int, Error] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMember:
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
    """A share group, as described by its coordinator.

    `state` is "Empty", "Stable" or "Dead". `assignor` is empty if the group never had a
    member. `authorized_operations` ("READ", "DESCRIBE" …) is None unless requested.
    """

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareGroupMember, ...]
    coordinator: Broker = UNKNOWN_BROKER
    authorized_operations: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMember:
    """A member of a consumer group, classic or new."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    subscription: tuple[str, ...]
    """Only for groups of KIP-848."""
    assignment: tuple[TopicPartition, ...]
    """Empty if the group's protocol is not "consumer"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """A consumer group; `group_type` is "classic" or "consumer" (KIP-848)."""

    group_id: str
    group_type: str
    state: str
    assignor: str
    members: tuple[ConsumerGroupMember, ...]
    coordinator: Broker = UNKNOWN_BROKER
    authorized_operations: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """The start offset and lag of a share group in a partition (KIP-932, KIP-1226).

    All are None for a partition that the group has not started to read. Only `lag` is
    None if it is unknown: then use `ShareGroupAdmin.list_offsets`.
    """

    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


class LogBounds(NamedTuple):
    """The first offset of a log, and the next one to be written."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A committed offset of a consumer group: the next offset that it reads."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


YEAR_10000: Final = 253_402_300_800
"""Seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSpec:
    """A way to look up an offset in a log, as in Kafka's ListOffsets.

    `OffsetSpec.EARLIEST`, `.LATEST` (the next offset to be written; with
    `read_committed` the last stable offset), `.MAX_TIMESTAMP` (the record with the
    highest timestamp), or `OffsetSpec.at(time)`: the first record with this or a later
    timestamp.
    """

    timestamp: int
    """Milliseconds since the epoch; negative values are special."""

    EARLIEST: ClassVar["OffsetSpec"]
    LATEST: ClassVar["OffsetSpec"]
    MAX_TIMESTAMP: ClassVar["OffsetSpec"]

    @classmethod
    def at(cls, time: datetime | float) -> "OffsetSpec":
        """Return a spec for a time: a datetime (naive: local) or seconds since 1970.

        Raises:
            ConfigurationError: it is neither, or after the year 9999. Kafka's
                milliseconds would be, and the log's end would be found for them.
        """
        seconds = time.timestamp() if isinstance(time, datetime) else time
        if not isinstance(seconds, int | float) or not abs(seconds) < YEAR_10000:
            raise ConfigurationError(
                f"time must be a datetime or seconds since 1970, not {time!r}"
            )
        return cls(timestamp=max(0, round(seconds * 1000)))


OffsetSpec.LATEST = OffsetSpec(timestamp=-1)
OffsetSpec.EARLIEST = OffsetSpec(timestamp=-2)
OffsetSpec.MAX_TIMESTAMP = OffsetSpec(timestamp=-3)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffset:
    """An offset of a log; None if there is no such record.

    `timestamp` is the record's, in milliseconds; None for earliest and latest.
    """

    offset: int | None
    timestamp: int | None
    leader_epoch: int | None


class DeliveryState(OpenEnum):
    """The delivery state of a record (KIP-932), with the numbers of the protocol.

    Only the partition leader knows acquisition locks, in memory: a locked record is
    AVAILABLE here. Numbers of newer brokers become values named UNKNOWN_<number>, with
    `is_known` False.
    """

    AVAILABLE = 0
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """A dead letter is being written (KIP-1191, Kafka 4.4); then comes ARCHIVED."""
    ARCHIVED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBatch:
    """A range of offsets with the same state and delivery count; both ends included."""

    first_offset: int
    last_offset: int
    state: DeliveryState
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionState:
    """The share coordinator's state of a share-partition.

    `start_offset` is None if the group has not started to read. Batches are in order
    and can have gaps. Offsets above the last batch were never delivered, or are locked
    for the first time.
    """

    start_offset: int | None
    state_epoch: int
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSummary:
    """A summary of a share-partition's state.

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

    `source` is Kafka's name: "DYNAMIC_GROUP_CONFIG" if it was set for the group,
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
        """True unless it was set for this group, broker or topic itself."""
        return self.source not in _OWN_SOURCES


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionInfo:
    """The leader (None: there is none now) and replicas of a partition, as node ids."""

    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic; `topic_id` has sixteen bytes."""

    name: str
    topic_id: bytes
    internal: bool
    partitions: Mapping[int, TopicPartitionInfo]
    authorized_operations: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create.

    Attributes:
        name: its name.
        partitions: their number; None for the brokers' default (`num.partitions`).
        replication_factor: replicas of each partition; None for the brokers' default
            (`default.replication.factor`).
        configs: its configs by name, for example {"retention.ms": 86_400_000}. Other
            configs have the brokers' defaults.
    """

    name: str
    _: KW_ONLY
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str | int | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """A topic as it was created, or would be with `validate_only`.

    Attributes:
        topic_id: sixteen bytes.
        partitions, replication_factor: None without the right to read the configs of
            the topic (DESCRIBE_CONFIGS).
    """

    topic_id: bytes
    partitions: int | None
    replication_factor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The cluster; `controller_id` is the broker that takes controller requests."""

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
    """A broker's features by name ("share.version"), and its APIs by key.

    `finalized` features are enabled in the cluster (`highest` is the version in use),
    this broker can enable `supported` features.
    """

    finalized: Mapping[str, FeatureRange]
    supported: Mapping[str, FeatureRange]
    apis: Mapping[int, FeatureRange]

    @property
    def share_version(self) -> int:
        """The finalized `share.version`; 0 means disabled."""
        found = self.finalized.get("share.version")
        return 0 if found is None else found.highest
