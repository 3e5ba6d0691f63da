"""Resources with settings, and the permission to access them."""

from typing import Final

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import ConfigError
from sharecons.testing.broker.topics import topic_name_error

__all__ = [
    "BROKER",
    "CLIENT_METRICS",
    "GROUP",
    "TOPIC",
    "check_access",
    "check_topic_name",
]

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32

ACL_RESOURCES: Final = {
    TOPIC: "TOPIC",
    BROKER: "CLUSTER",
    CLIENT_METRICS: "CLUSTER",
    GROUP: "GROUP",
}
DENIALS: Final = {
    TOPIC: (
        ErrorCode.topic_authorization_failed,
        "Not authorized to access topics: [Topic authorization failed.]",
    ),
    BROKER: (
        ErrorCode.cluster_authorization_failed,
        "Cluster authorization failed.",
    ),
    CLIENT_METRICS: (
        ErrorCode.cluster_authorization_failed,
        "Cluster authorization failed.",
    ),
    GROUP: (
        ErrorCode.group_authorization_failed,
        "Not authorized to access group: Group authorization failed.",
    ),
}


def check_access(cluster: Cluster, operation: str, kind: int, name: str) -> None:
    """Check whether clients are allowed to see or change a resource's settings.

    Raises:
        ConfigError: they are not.
    """
    if kind not in ACL_RESOURCES:
        return
    resource = CLUSTER_NAME if ACL_RESOURCES[kind] == "CLUSTER" else name
    if cluster.authorizer.denies(operation, ACL_RESOURCES[kind], resource):
        raise ConfigError(*DENIALS[kind])


def check_topic_name(name: str) -> None:
    """Check a topic's name.

    Raises:
        ConfigError: the name is invalid.
    """
    if error := topic_name_error(name):
        raise ConfigError(
            ErrorCode.invalid_topic_exception, f"Topic name is invalid: {error}"
        )
