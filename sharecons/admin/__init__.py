"""Administration of share groups, for operators.

`ShareGroupAdmin` in `client` has a method per operation; the other names are its
results. The modules:

- groups: `groups`, `lifecycle` (creation and deletion), `consumer_offsets`;
- offsets: `offsets`, `alter_offsets`, `log_bounds` (starts and ends of logs), `missing`
  (partitions that do not exist);
- states: `state` (from the coordinator), `state_records` (from its log), `read_log`,
  `state_replay` (how records combine; no I/O);
- requests: `client_executor` (which broker gets which);
- configs: `configs`, `config_validation` (no I/O);
- the cluster and its topics: `cluster`, `topics`, `topic_methods` (of the client),
  `new_topics` (no I/O).
"""

from sharecons.admin.client import ShareGroupAdmin
from sharecons.protocol.admin.models import (
    Broker,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConsumerGroup,
    ConsumerGroupMember,
    CreatedTopic,
    DeliveryState,
    FeatureRange,
    Features,
    GroupListing,
    GroupOffset,
    ListedGroup,
    LogOffset,
    NewTopic,
    OffsetSpec,
    ShareGroup,
    ShareGroupMember,
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
    "ConsumerGroupMember",
    "CreatedTopic",
    "DeliveryState",
    "FeatureRange",
    "Features",
    "GroupListing",
    "GroupOffset",
    "ListedGroup",
    "LogOffset",
    "NewTopic",
    "OffsetSpec",
    "Result",
    "Results",
    "ShareGroup",
    "ShareGroupAdmin",
    "ShareGroupMember",
    "SharePartitionState",
    "StateBatch",
    "StateSummary",
    "Topic",
    "TopicPartitionInfo",
]
__dir__ = __all__.copy
