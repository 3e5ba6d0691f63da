"""Administration of share groups, for operators.

`ShareGroupAdmin` has a method per operation; the other names are its results.
"""

from sharecons.admin.client import ShareGroupAdmin
from sharecons.protocol.admin.models import (
    Broker,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConsumerGroup,
    ConsumerMember,
    DeliveryState,
    FeatureRange,
    Features,
    GroupListing,
    GroupOffset,
    ListedGroup,
    LogOffset,
    OffsetSpec,
    ShareGroup,
    ShareMember,
    SharePartitionState,
    StateBatch,
    StateSummary,
    Topic,
    TopicPartitionInfo,
)
from sharecons.protocol.admin.results import Result, Results

__all__ = [
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
    "Result",
    "Results",
    "ShareGroup",
    "ShareGroupAdmin",
    "ShareMember",
    "SharePartitionState",
    "StateBatch",
    "StateSummary",
    "Topic",
    "TopicPartitionInfo",
]
