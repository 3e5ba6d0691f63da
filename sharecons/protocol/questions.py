"""What administration asks brokers, one request at a time, and how replies look.

Rule 1: a request names what it is about; an answer is a mapping from that to a
`Reply`, or one `Reply` where the request is about one thing.
Rule 2: nothing here knows which broker is asked, or how often.
"""

import enum
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from sharecons.protocol.admin_values import (
    Broker,
    CommittedOffset,
    OffsetSpec,
    Topic,
)
from sharecons.protocol.values import SharePartition
from sharecons.untyped import TopicPartition

__all__ = [
    "LAG_UNTOLD",
    "AlterConfigs",
    "AlterShareOffsets",
    "AskTopics",
    "CommitOffsets",
    "CoordinatorKind",
    "DeleteGroups",
    "DeleteShareOffsets",
    "DescribeClassicGroups",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeConsumerGroups",
    "DescribeFeatures",
    "DescribeShareGroups",
    "DescribeShareOffsets",
    "FetchCommitted",
    "FindCoordinators",
    "ListGroups",
    "ListLogOffsets",
    "ReadState",
    "ReadStateSummary",
    "Reply",
    "Resource",
    "ResourceKind",
    "TopicsAnswered",
    "coordinator_key",
]

V = TypeVar("V")

LAG_UNTOLD: Final = -2
"""The lag of an answer that has none: version 0, Kafka 4.1."""

Partitions = tuple[TopicPartition, ...]


class Reply(NamedTuple, Generic[V]):
    """One thing's part of an answer: an error code, or a value, or (parts of it
    failed) both."""

    code: int
    message: str | None
    value: V | None


class CoordinatorKind(enum.IntEnum):
    """Key types of FindCoordinator."""

    GROUP = 0
    SHARE = 2


class ResourceKind(enum.IntEnum):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinators:
    """Answered by a reply for each key, with the broker."""

    kind: CoordinatorKind
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTopics:
    """Metadata; no names ask for every topic. Answered by `TopicsAnswered`."""

    names: tuple[str, ...] | None
    authorized_operations: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsAnswered:
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Reply[Topic]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeCluster:
    authorized_operations: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFeatures:
    """ApiVersions, for its features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroups:
    states: tuple[str, ...]
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroups:
    group_ids: tuple[str, ...]
    authorized_operations: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConsumerGroups:
    """Those of KIP-848."""

    group_ids: tuple[str, ...]
    authorized_operations: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClassicGroups:
    group_ids: tuple[str, ...]
    authorized_operations: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroups:
    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareOffsets:
    """Partitions by group; None is all that the group knows of."""

    groups: Mapping[str, Partitions | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterShareOffsets:
    group_id: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteShareOffsets:
    group_id: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadState:
    """The share-partitions of a group, each with its leader epoch.

    The share coordinator takes a leader epoch higher than those it saw to be true, and
    fences the leader that has a lower one (KIP-932, "ReadShareGroupState").
    """

    group_id: str
    leader_epochs: Mapping[SharePartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStateSummary:
    group_id: str
    partitions: tuple[SharePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigs:
    """Answered by the entries of each resource, by name; no names ask for all."""

    resources: tuple[Resource, ...]
    names: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigs:
    """Values by name; None sets back to the default."""

    resource: Resource
    configs: Mapping[str, str | None]
    validate_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLogOffsets:
    specs: Mapping[TopicPartition, OffsetSpec]
    read_committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCommitted:
    """Partitions by group; None is all that the group committed."""

    groups: Mapping[str, Partitions | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOffsets:
    """As no member: the group must have none."""

    group_id: str
    offsets: Mapping[TopicPartition, CommittedOffset]
