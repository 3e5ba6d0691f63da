"""Requests of the admin client, and the replies to them.

Rule 1: a request contains keys (groups, partitions …); the response maps each key to a
`Reply`. A request for one thing has one `Reply`.
Rule 2: nothing here depends on which broker receives a request, or how often.

These are named tuples for a fast start of commands: twenty frozen dataclasses take
30 ms to create, named tuples 5 ms.
"""

import enum
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import (
    Broker,
    CommittedOffset,
    NewTopic,
    OffsetSpec,
    Topic,
)
from sharecons.protocol.open_enum import OpenEnum
from sharecons.protocol.partitions import SharePartition

__all__ = [
    "UNKNOWN_LAG",
    "AlterConfigs",
    "AlterConsumerGroupOffsets",
    "AlterShareGroupOffsets",
    "CoordinatorKind",
    "CreateTopic",
    "CreateTopics",
    "DeleteGroups",
    "DeleteRecords",
    "DeleteShareGroupOffsets",
    "DeleteTopics",
    "DescribeClassicGroups",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeConsumerGroups",
    "DescribeFeatures",
    "DescribeShareGroups",
    "FindCoordinators",
    "ListConsumerGroupOffsets",
    "ListGroups",
    "ListOffsets",
    "ListShareGroupOffsets",
    "PartialReply",
    "Partitions",
    "ReadState",
    "ReadStateSummary",
    "Reply",
    "Resource",
    "ResourceKind",
    "TopicMetadata",
    "TopicMetadataRequest",
    "coordinator_key",
]

V = TypeVar("V")

UNKNOWN_LAG: Final = -2
"""The lag in responses that have none: version 0, Kafka 4.1."""

Partitions = tuple[TopicPartition, ...]


class Reply(NamedTuple, Generic[V]):
    """The part of a response for one key: an error code, or a value."""

    code: int
    message: str | None
    value: V | None


class PartialReply(Reply[V]):
    """A retriable reply with a value of which some parts are errors."""

    __slots__ = ()


class CoordinatorKind(enum.IntEnum):
    """Key types of FindCoordinator."""

    GROUP = 0
    SHARE = 2


class ResourceKind(OpenEnum):
    """A type of config resource, with the numbers of the protocol."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Resource(NamedTuple):
    kind: ResourceKind
    name: str


def coordinator_key(group_id: str, share_partition: SharePartition) -> str:
    """Return the FindCoordinator key of a share-partition (KIP-932)."""
    topic_id = urlsafe_b64encode(share_partition.topic_id).decode().rstrip("=")
    return f"{group_id}:{topic_id}:{share_partition.partition}"


class FindCoordinators(NamedTuple):
    """The response has a reply with a broker for each key."""

    kind: CoordinatorKind
    keys: tuple[str, ...]


class TopicMetadataRequest(NamedTuple):
    """Metadata of topics by name; None as names: all. Returns `TopicMetadata`."""

    names: tuple[str, ...] | None
    authorized_operations: bool = False


class TopicMetadata(NamedTuple):
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Reply[Topic]]
    cluster_id: str | None = None


class CreateTopic(NamedTuple):
    """A topic; -1 partitions, and no replication factor: the brokers' default.

    `timeout` is in seconds, for the controller. Sent as `CreateTopics`.
    """

    name: str
    partitions: int
    configs: Mapping[str, str]
    timeout: float
    replication_factor: int | None = None


class CreateTopics(NamedTuple):
    """Returns a `Reply` with a `CreatedTopic` by name.

    `timeout` is in seconds, for the controller.
    """

    topics: tuple[NewTopic, ...]
    timeout: float
    validate_only: bool = False


class DeleteTopics(NamedTuple):
    """Returns a `Reply` by name; `timeout` is in seconds, for the controller."""

    names: tuple[str, ...]
    timeout: float


class DescribeCluster(NamedTuple):
    authorized_operations: bool = False


class DescribeFeatures(NamedTuple):
    """ApiVersions, requested for its features."""


class ListGroups(NamedTuple):
    states: tuple[str, ...]
    types: tuple[str, ...]


class DescribeShareGroups(NamedTuple):
    group_ids: tuple[str, ...]
    authorized_operations: bool


class DescribeConsumerGroups(NamedTuple):
    """For groups of KIP-848."""

    group_ids: tuple[str, ...]
    authorized_operations: bool


class DescribeClassicGroups(NamedTuple):
    group_ids: tuple[str, ...]
    authorized_operations: bool


class DeleteGroups(NamedTuple):
    group_ids: tuple[str, ...]


class ListShareGroupOffsets(NamedTuple):
    """Partitions by group; None means all that the group has state of."""

    groups: Mapping[str, Partitions | None]


class AlterShareGroupOffsets(NamedTuple):
    group_id: str
    offsets: Mapping[TopicPartition, int]


class DeleteShareGroupOffsets(NamedTuple):
    group_id: str
    topics: tuple[str, ...]


class ReadState(NamedTuple):
    """The share-partitions of a group, each with its leader epoch.

    If the leader epoch is higher than any before, the share coordinator takes it for
    the epoch of a new leader, and then fences leaders with a lower one (KIP-932,
    "ReadShareGroupState").
    """

    group_id: str
    leader_epochs: Mapping[SharePartition, int]


class ReadStateSummary(NamedTuple):
    group_id: str
    partitions: tuple[SharePartition, ...]


class DescribeConfigs(NamedTuple):
    """The response has the entries of each resource, by name; None as names: all."""

    resources: tuple[Resource, ...]
    names: tuple[str, ...] | None


class AlterConfigs(NamedTuple):
    """New values by name; None resets one to its default."""

    resource: Resource
    configs: Mapping[str, str | None]
    validate_only: bool


class ListOffsets(NamedTuple):
    specs: Mapping[TopicPartition, OffsetSpec]
    read_committed: bool


class DeleteRecords(NamedTuple):
    """Deletes the records before an offset of each partition; returns log starts.

    `timeout` is how long the leader waits for the replicas, in seconds.
    """

    offsets: Mapping[TopicPartition, int]
    timeout: float


class ListConsumerGroupOffsets(NamedTuple):
    """Partitions by group; None means all with a committed offset."""

    groups: Mapping[str, Partitions | None]


class AlterConsumerGroupOffsets(NamedTuple):
    """A commit without a member id; the group must have no members."""

    group_id: str
    offsets: Mapping[TopicPartition, CommittedOffset]
