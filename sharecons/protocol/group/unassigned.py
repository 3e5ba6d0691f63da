"""Why a member has no partitions although its topics exist.

Every member of a share group is assigned partitions, even if there are more members
than partitions. The group coordinator assigns a partition once its state is stored in
`__share_group_state`. If the brokers cannot create or write that topic, members wait
without an error.
"""

from typing import Final, NamedTuple

from sharecons.protocol.codes import Code
from sharecons.protocol.group.messages import MetadataRequest, TopicDescription

__all__ = ["STATE_TOPIC_REQUEST", "Cause", "cause_of"]

STATE_TOPIC: Final = "__share_group_state"
STATE_TOPIC_REQUEST: Final = MetadataRequest(names=(STATE_TOPIC,), ids=())

REPLICATION_FACTOR: Final = "share.coordinator.state.topic.replication.factor"

PREFLIGHT: Final = (
    "run `sharecons preflight`, and read the log of the group coordinator"
)


class Cause(NamedTuple):
    """Why no partition is assigned, and what to do."""

    reason: str
    advice: str


def cause_of(described: TopicDescription | None, brokers: int) -> Cause:
    """Return why no partition is assigned, as far as metadata shows it.

    Args:
        described: the topic of the groups' state; None if there was no response.
        brokers: how many brokers the cluster has.
    """
    if described is None:
        return Cause("the group coordinator assigns none", PREFLIGHT)
    match described.error:
        case Code.UNKNOWN_TOPIC_OR_PARTITION:
            return _not_created(brokers)
        case Code.TOPIC_AUTHORIZATION_FAILED:
            return Cause(
                "the group coordinator assigns none; this principal cannot DESCRIBE "
                f"{STATE_TOPIC}",
                PREFLIGHT,
            )
    leaderless = sum(each.leader_id < 0 for each in described.leaders.values())
    if leaderless:
        return Cause(
            f"{leaderless} of {len(described.leaders)} partitions of {STATE_TOPIC} "
            "have no leader",
            "check the brokers that have their replicas",
        )
    return Cause(
        "the group coordinator assigns none",
        f"check that {STATE_TOPIC} has its min.insync.replicas: {PREFLIGHT}",
    )


def _not_created(brokers: int) -> Cause:
    return Cause(
        f"the brokers have not created the topic {STATE_TOPIC}",
        f"{REPLICATION_FACTOR} (3 by default) must be at most {brokers}, the number of "
        "brokers: correct the properties of the brokers, and restart them; `sharecons "
        "preflight` shows the value",
    )
