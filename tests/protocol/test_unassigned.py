"""Why a member has no partitions, as far as metadata shows it."""

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.group.messages import TopicDescription
from sharecons.protocol.group.unassigned import cause_of
from sharecons.protocol.partitions import PartitionLeader


def state_topic(error: int = 0, leaders: tuple[int, ...] = ()) -> TopicDescription:
    return TopicDescription(
        error=error,
        name="__share_group_state",
        topic_id=bytes(16),
        leaders={at: PartitionLeader(node, 0) for at, node in enumerate(leaders)},
    )


@pytest.mark.parametrize(
    ("described", "reason", "advice"),
    [
        (None, "assigns none", "sharecons preflight"),
        (
            state_topic(Code.UNKNOWN_TOPIC_OR_PARTITION),
            "have not created the topic __share_group_state",
            "must be at most 2, the number of brokers",
        ),
        (
            state_topic(Code.TOPIC_AUTHORIZATION_FAILED),
            "cannot DESCRIBE __share_group_state",
            "sharecons preflight",
        ),
        (
            state_topic(leaders=(1, -1, -1)),
            "2 of 3 partitions of __share_group_state have no leader",
            "brokers that have their replicas",
        ),
        (state_topic(leaders=(1, 1)), "assigns none", "its min.insync.replicas"),
    ],
)
def test_state_topic_has_a_reason_and_advice(
    described: TopicDescription | None, reason: str, advice: str
) -> None:
    cause = cause_of(described, 2)

    assert reason in cause.reason
    assert advice in cause.advice
