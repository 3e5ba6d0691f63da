"""Groups as rows, with the columns of kafka-share-groups.sh."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from sharecons._record import TopicPartition
from sharecons.admin import GroupOffset, ShareGroup, ShareGroupMember
from sharecons.cli.tables import EMPTY, Column, Json, Row

__all__ = [
    "MEMBERS",
    "OFFSETS",
    "STATE",
    "VERBOSE_MEMBERS",
    "VERBOSE_OFFSETS",
    "VERBOSE_STATE",
    "member_rows",
    "offset_rows",
    "state_row",
]


def _format_assignment(value: Json) -> str:
    """Format `[{"topic": "t", "partitions": [0, 1]}]` as `t:0,1`."""
    topics = cast("Sequence[Mapping[str, Json]]", value)
    return (
        ";".join(f"{each['topic']}:{_format_partitions(each)}" for each in topics)
        or EMPTY
    )


def _format_coordinator(value: Json) -> str:
    broker = cast("Mapping[str, Json]", value)
    host = f"[{broker['host']}]" if ":" in str(broker["host"]) else broker["host"]
    return f"{host}:{broker['port']} ({broker['id']})"


def _format_partitions(each: Mapping[str, Json]) -> str:
    partitions = cast("Sequence[int]", each["partitions"])
    return ",".join(str(number) for number in partitions)


_GROUP: Final = Column("group", is_section=True)
_TOPIC: Final = Column("topic", is_section=True)
_PARTITION: Final = Column("partition", align_right=True)
_EPOCH: Final = Column("leader_epoch", align_right=True)
_START: Final = Column("start_offset", align_right=True)
_LAG: Final = Column("lag", align_right=True)

OFFSETS: Final = (_GROUP, _TOPIC, _PARTITION, _START, _LAG)
VERBOSE_OFFSETS: Final = (_GROUP, _TOPIC, _PARTITION, _EPOCH, _START, _LAG)

_MEMBER: Final = Column("member_id", "CONSUMER-ID")
_HOST: Final = Column("client_host", "HOST")
_CLIENT: Final = Column("client_id")
_COUNT: Final = Column("partitions", "#PARTITIONS", align_right=True)
_ASSIGNMENT: Final = Column("assignment", can_fold=True, format=_format_assignment)
_MEMBER_COLUMNS: Final = (_GROUP, _MEMBER, _HOST, _CLIENT, _COUNT)

MEMBERS: Final = (*_MEMBER_COLUMNS, _ASSIGNMENT)
VERBOSE_MEMBERS: Final = (
    *_MEMBER_COLUMNS,
    Column("member_epoch", align_right=True),
    _ASSIGNMENT,
    Column("rack"),
    Column("subscription", can_fold=True),
)

_COORDINATOR: Final = Column(
    "coordinator", "COORDINATOR (ID)", format=_format_coordinator
)
_STATE: Final = Column("state")
_MEMBERS: Final = Column("members", "#MEMBERS", align_right=True)

STATE: Final = (_GROUP, _COORDINATOR, _STATE, _MEMBERS)
VERBOSE_STATE: Final = (
    _GROUP,
    _COORDINATOR,
    _STATE,
    Column("group_epoch", align_right=True),
    Column("assignment_epoch", align_right=True),
    _MEMBERS,
    Column("assignor"),
    Column("authorized_operations", can_fold=True),
)


def offset_rows(
    group_id: str,
    offsets: Mapping[TopicPartition, GroupOffset],
    lags: Mapping[tuple[str, TopicPartition], int],
) -> list[Row]:
    """Return a row for each partition; `lags` has the lags that brokers do not have."""
    return [
        {
            "group": group_id,
            "topic": key.topic,
            "partition": key.partition,
            "start_offset": offset.start_offset,
            "leader_epoch": offset.leader_epoch,
            "lag": lags.get((group_id, key), offset.lag),
        }
        for key, offset in sorted(offsets.items())
    ]


def member_rows(group: ShareGroup) -> list[Row]:
    """Return a row for each member."""
    members = sorted(group.members, key=lambda member: member.member_id)
    return [_member(group.group_id, member) for member in members]


def _member(group_id: str, member: ShareGroupMember) -> Row:
    return {
        "group": group_id,
        "member_id": member.member_id,
        "member_epoch": member.member_epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack": member.rack,
        "partitions": len(member.assignment),
        "assignment": _by_topic(member.assignment),
        "subscription": sorted(member.subscription),
    }


def _by_topic(assignment: Iterable[TopicPartition]) -> list[Json]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(assignment):
        topics.setdefault(topic, []).append(partition)
    return [{"topic": name, "partitions": numbers} for name, numbers in topics.items()]


def state_row(group: ShareGroup) -> Row:
    """Return the row of a group's state."""
    operations = group.authorized_operations
    return {
        "group": group.group_id,
        "coordinator": {
            "id": group.coordinator.node_id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
        "state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.assignor,
        "members": len(group.members),
        "authorized_operations": None if operations is None else sorted(operations),
    }
