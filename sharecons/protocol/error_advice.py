"""Advice for errors that brokers return again and again, by request.

The client retries these errors by itself. Advice is for an error that lasts: a
setting to change, or the place where the cause is recorded.
"""

from collections.abc import Mapping
from typing import Final

from sharecons.protocol.codes import Code

__all__ = ["FETCH", "FIND_COORDINATOR", "HEARTBEAT", "METADATA", "advice_for"]

BROKER_LOG: Final = "if this lasts, read the log of that broker"
COORDINATOR_LOG: Final = "if this lasts, read the log of the group coordinator"
STATE_COORDINATOR: Final = (
    "the leader cannot read or write the group's state: check the topic "
    "__share_group_state with `sharecons preflight`"
)
LOADING: Final = (
    "the coordinator loads its partition of __consumer_offsets; if this lasts, read "
    "the log of that broker"
)
OFFSETS_TOPIC: Final = (
    "check that the topic __consumer_offsets exists and has leaders: "
    "offsets.topic.replication.factor must not exceed the number of brokers"
)

FIND_COORDINATOR: Final[Mapping[int, str]] = {
    Code.COORDINATOR_NOT_AVAILABLE: OFFSETS_TOPIC,
    Code.COORDINATOR_LOAD_IN_PROGRESS: LOADING,
}

HEARTBEAT: Final[Mapping[int, str]] = {
    Code.NOT_COORDINATOR: "the coordinator is looked up again; if this lasts, check "
    "that the partitions of __consumer_offsets have leaders",
    Code.COORDINATOR_NOT_AVAILABLE: OFFSETS_TOPIC,
    Code.COORDINATOR_LOAD_IN_PROGRESS: LOADING,
    Code.UNKNOWN_MEMBER_ID: "the member joins again",
    Code.FENCED_MEMBER_EPOCH: "the member joins again; if this lasts, check that no "
    "other process uses this member id",
    Code.TOPIC_AUTHORIZATION_FAILED: "the principal needs READ on the group and on its "
    "topics",
}

FETCH: Final[Mapping[int, str]] = {
    Code.SHARE_SESSION_LIMIT_REACHED: "the broker has as many share sessions as it can "
    "have: raise its group.share.max.share.sessions, or run fewer consumers",
    Code.SHARE_SESSION_NOT_FOUND: "the broker drops new share sessions: raise its "
    "group.share.max.share.sessions, or run fewer consumers",
    Code.COORDINATOR_NOT_AVAILABLE: STATE_COORDINATOR,
    Code.COORDINATOR_LOAD_IN_PROGRESS: STATE_COORDINATOR,
    Code.NOT_COORDINATOR: STATE_COORDINATOR,
    Code.TOPIC_AUTHORIZATION_FAILED: "the principal needs READ on the topic",
    Code.GROUP_AUTHORIZATION_FAILED: "the principal needs READ on the group",
    Code.UNKNOWN_TOPIC_OR_PARTITION: "the topic was deleted, or its leader does not "
    "have the partition; if this lasts, read the log of that broker",
    Code.UNKNOWN_TOPIC_ID: "the topic was deleted, or created again; if this lasts, "
    "read the log of that broker",
    Code.KAFKA_STORAGE_ERROR: "check the disks and the log of the partition's leader",
    Code.NOT_LEADER_OR_FOLLOWER: "the partition's leader is moving; if this lasts, "
    "check the brokers that have its replicas",
    Code.LEADER_NOT_AVAILABLE: "check the brokers that have the partition's replicas",
    Code.FENCED_LEADER_EPOCH: "the partition's leader is moving; if this lasts, "
    "check the brokers that have its replicas",
}

METADATA: Final[Mapping[int, str]] = {
    Code.UNKNOWN_TOPIC_OR_PARTITION: "create the topic, or correct its name",
    Code.LEADER_NOT_AVAILABLE: "check the brokers that have the topic's replicas",
}


def advice_for(table: Mapping[int, str], code: int) -> str:
    """Return what to do about a code that lasts."""
    return table.get(
        code, COORDINATOR_LOG if table in (FIND_COORDINATOR, HEARTBEAT) else BROKER_LOG
    )
