"""The work for a group with many partitions and members."""

from typing import Any

import pytest

from sharecons import TopicPartition
from sharecons.admin import GroupOffset, Result, Results, ShareGroup
from sharecons.group_state.assemble import Readings, group_state_of
from sharecons.protocol.admin.models import ShareGroupMember


class Assignment(tuple[TopicPartition, ...]):
    """Counts how often all assignments are searched or iterated over."""

    looks = 0

    def __contains__(self, key: object) -> bool:
        Assignment.looks += 1
        return super().__contains__(key)

    def __iter__(self) -> Any:
        Assignment.looks += 1
        return super().__iter__()


def member(number: int, assignment: tuple[TopicPartition, ...]) -> ShareGroupMember:
    return ShareGroupMember(
        member_id=f"member-{number}",
        member_epoch=1,
        client_id="",
        client_host="",
        rack=None,
        subscription=("orders",),
        assignment=assignment,
    )


def readings(keys: list[TopicPartition], members: int) -> Readings:
    """Return what brokers return of a group whose members share these partitions."""
    group = ShareGroup(
        group_id="billing",
        state="Stable",
        group_epoch=1,
        assignment_epoch=1,
        assignor="",
        members=tuple(member(n, Assignment(keys[n::members])) for n in range(members)),
    )
    offset = GroupOffset(start_offset=0, leader_epoch=0, lag=0)
    return Readings(
        groups=Results({"billing": Result(group)}),
        offsets=Results(
            {"billing": Result(Results({k: Result(offset) for k in keys}))}
        ),
        configs=Results({"billing": Result({})}),
    )


@pytest.mark.parametrize("partitions", [10, 100])
def test_each_assignment_is_read_once_however_many_partitions_there_are(
    partitions: int,
) -> None:
    keys = [TopicPartition("orders", number) for number in range(partitions)]
    read = readings(keys, members=5)
    Assignment.looks = 0

    state = group_state_of("billing", read, None, 0.0)

    assert 5 == Assignment.looks
    assert {key: (f"member-{key.partition % 5}",) for key in keys} == {
        key: one.members for key, one in state.partitions.items()
    }
