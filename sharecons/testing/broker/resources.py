"""What has settings of its own: a topic, a broker, a group; and who may see them."""

from typing import Final

from sharecons.testing.broker.access import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.settings.changes import ConfigError
from sharecons.testing.broker.topics import Topic, fault_of_name

__all__ = ["BROKER", "GROUP", "TOPIC", "check_access", "topic_named"]

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32

NAMES: Final = {TOPIC: "TOPIC", BROKER: "CLUSTER", GROUP: "GROUP"}
DENIALS: Final = {
    TOPIC: (
        ErrorCode.topic_authorization_failed,
        "Not authorized to access topics: [Topic authorization failed.]",
    ),
    BROKER: (
        ErrorCode.cluster_authorization_failed,
        "Cluster authorization failed.",
    ),
    GROUP: (
        ErrorCode.group_authorization_failed,
        "Not authorized to access group: Group authorization failed.",
    ),
}


def check_access(cluster: Cluster, operation: str, kind: int, name: str) -> None:
    """See whether clients may see or change these settings.

    Raises:
        ConfigError: they may not.
    """
    if kind not in NAMES:
        return
    resource = CLUSTER_NAME if kind == BROKER else name
    if cluster.access.denies(operation, NAMES[kind], resource):
        raise ConfigError(*DENIALS[kind])


def topic_named(cluster: Cluster, name: str, missing: str) -> Topic:
    """Find a topic, or say with `missing` that there is none.

    Raises:
        ConfigError: there is none.
    """
    if fault := fault_of_name(name):
        raise ConfigError(
            ErrorCode.invalid_topic_exception, f"Topic name is invalid: {fault}"
        )
    topic = cluster.topics.named(name)
    if topic is None:
        raise ConfigError(ErrorCode.unknown_topic_or_partition, missing)
    return topic
