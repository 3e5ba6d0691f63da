"""The topics in which Kafka's coordinators keep their state.

As in Kafka, each exists from its first use: `__consumer_offsets` once a client has
requested the coordinator of a group, `__transaction_state` the coordinator of a
transaction, `__share_group_state` the coordinator of a share-partition, or once a share
group's first partition is initialised. Kafka responds to the first of these requests
with COORDINATOR_NOT_AVAILABLE, until the topic is created; here it exists immediately.

These brokers keep the state in memory. Only `__share_group_state` has records, written
when a client reads it.
"""

from collections.abc import Mapping
from typing import Final

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.coordinators import GROUP, SHARE, TRANSACTION
from sharecons.testing.broker.create_topics import NewTopic, create_topic
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.topics import Topic
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["ensure_state_topic", "new_topic", "write_state_records"]

NAMES: Final[Mapping[int, str]] = {
    GROUP: "__consumer_offsets",
    TRANSACTION: "__transaction_state",
    SHARE: "__share_group_state",
}
PREFIXES: Final[Mapping[str, str]] = {
    "__consumer_offsets": "offsets.topic",
    "__transaction_state": "transaction.state.log",
    "__share_group_state": "share.coordinator.state.topic",
}
SEGMENT_BYTES: Final = "104857600"
CONFIGS: Final[Mapping[str, Mapping[str, str]]] = {
    "__consumer_offsets": {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": SEGMENT_BYTES,
    },
    "__transaction_state": {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": SEGMENT_BYTES,
        "unclean.leader.election.enable": "false",
    },
    "__share_group_state": {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "retention.ms": "-1",
        "segment.bytes": SEGMENT_BYTES,
    },
}
WITH_MIN_ISR: Final = ("__transaction_state", "__share_group_state")


def ensure_state_topic(cluster: Cluster, key_type: int) -> bool:
    """Create the topic of a key type's coordinators, if it does not exist.

    Return False if it cannot be created, because there are fewer brokers than its
    replication factor: then there is no coordinator.
    """
    name = NAMES[key_type]
    if cluster.topics.by_name(name) is None:
        try:
            create_topic(cluster, new_topic(cluster, name))
        except RequestError:
            return False
    return True


def write_state_records(cluster: Cluster, topic: Topic | None) -> None:
    """Write the states of share groups before a client reads this topic."""
    if topic is not None and topic.name == NAMES[SHARE]:
        states = cluster.share_partitions.states
        cluster.state_records.write(topic, states, milliseconds())


def new_topic(cluster: Cluster, name: str) -> NewTopic:
    """Return the topic that a broker creates by itself under a name."""
    prefix = PREFIXES.get(name)
    if prefix is None:
        return NewTopic(name=name)
    value = cluster.configs.broker_value
    config = dict(CONFIGS[name])
    if name in WITH_MIN_ISR:
        config["min.insync.replicas"] = value(f"{prefix}.min.isr")
    return NewTopic(
        name=name,
        partitions=int(value(f"{prefix}.num.partitions")),
        replication=int(value(f"{prefix}.replication.factor")),
        config=config,
    )
