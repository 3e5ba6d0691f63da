"""What administration asks brokers, one request at a time, and how replies look.

Rule 1: a request names what it is about; an answer is a mapping from that to a
`Reply`, or one `Reply` where the request is about one thing.
Rule 2: nothing here knows which broker is asked, or how often.

Named tuples, since a command's start is felt: twenty frozen dataclasses take 30 ms to
make, these 5.
"""

import enum
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import (
    Broker,
    CommittedOffset,
    OffsetSpec,
    Topic,
)
from sharecons.protocol.messages import SharePartition
from sharecons.protocol.open_enum import OpenEnum

__all__ = [
    "UNKNOWN_LAG",
    "AlterConfigs",
    "AlterConsumerGroupOffsets",
    "AlterShareGroupOffsets",
    "CoordinatorKind",
    "DeleteGroups",
    "DeleteShareGroupOffsets",
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
"""The lag of an answer that has none: version 0, Kafka 4.1."""

Partitions = tuple[TopicPartition, ...]


class Reply(NamedTuple, Generic[V]):
    """One thing's part of an answer: an error code, or a value."""

    code: int
    message: str | None
    value: V | None


class PartialReply(Reply[V]):
    """A value of which some parts may yet come; the code says why they did not."""

    __slots__ = ()


class CoordinatorKind(enum.IntEnum):
    """Key types of FindCoordinator."""

    GROUP = 0
    SHARE = 2


class ResourceKind(OpenEnum):
    """What has configs; the wire's numbers."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Resource(NamedTuple):
    kind: ResourceKind
    name: str


def coordinator_key(group_id: str, share_partition: SharePartition) -> str:
    """Give the key that a share-partition's coordinator is found by (KIP-932)."""
    topic_id = urlsafe_b64encode(share_partition.topic_id).decode().rstrip("=")
    return f"{group_id}:{topic_id}:{share_partition.partition}"


class FindCoordinators(NamedTuple):
    """Answered by a reply for each key, with the broker."""

    kind: CoordinatorKind
    keys: tuple[str, ...]


class TopicMetadataRequest(NamedTuple):
    """Metadata; no names ask for every topic. Answered by `TopicMetadata`."""

    names: tuple[str, ...] | None
    authorized_operations: bool = False


class TopicMetadata(NamedTuple):
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Reply[Topic]]


class DescribeCluster(NamedTuple):
    authorized_operations: bool = False


class DescribeFeatures(NamedTuple):
    """ApiVersions, for its features."""


class ListGroups(NamedTuple):
    states: tuple[str, ...]
    types: tuple[str, ...]


class DescribeShareGroups(NamedTuple):
    group_ids: tuple[str, ...]
    authorized_operations: bool


class DescribeConsumerGroups(NamedTuple):
    """Those of KIP-848."""

    group_ids: tuple[str, ...]
    authorized_operations: bool


class DescribeClassicGroups(NamedTuple):
    group_ids: tuple[str, ...]
    authorized_operations: bool


class DeleteGroups(NamedTuple):
    group_ids: tuple[str, ...]


class ListShareGroupOffsets(NamedTuple):
    """Partitions by group; None is all that the group knows of."""

    groups: Mapping[str, Partitions | None]


class AlterShareGroupOffsets(NamedTuple):
    group_id: str
    offsets: Mapping[TopicPartition, int]


class DeleteShareGroupOffsets(NamedTuple):
    group_id: str
    topics: tuple[str, ...]


class ReadState(NamedTuple):
    """The share-partitions of a group, each with its leader epoch.

    The share coordinator takes a leader epoch higher than those it saw to be true, and
    fences the leader that has a lower one (KIP-932, "ReadShareGroupState").
    """

    group_id: str
    leader_epochs: Mapping[SharePartition, int]


class ReadStateSummary(NamedTuple):
    group_id: str
    partitions: tuple[SharePartition, ...]


class DescribeConfigs(NamedTuple):
    """Answered by the entries of each resource, by name; no names ask for all."""

    resources: tuple[Resource, ...]
    names: tuple[str, ...] | None


class AlterConfigs(NamedTuple):
    """Values by name; None sets back to the default."""

    resource: Resource
    configs: Mapping[str, str | None]
    validate_only: bool


class ListOffsets(NamedTuple):
    specs: Mapping[TopicPartition, OffsetSpec]
    read_committed: bool


class ListConsumerGroupOffsets(NamedTuple):
    """Partitions by group; None is all that the group committed."""

    groups: Mapping[str, Partitions | None]


class AlterConsumerGroupOffsets(NamedTuple):
    """As no member: the group must have none."""

    group_id: str
    offsets: Mapping[TopicPartition, CommittedOffset]
