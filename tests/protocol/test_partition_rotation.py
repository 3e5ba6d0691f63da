"""Fetches that rotate through many partitions while many records are available."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.fetch.partition_rotation import (
    MAX_FULL_FETCHES,
    PART_SIZE,
    PartitionRotation,
)
from sharecons.protocol.partitions import SharePartition
from tests.protocol.hypothesis_profile import EXAMPLES
from tests.protocol.message_factories import TOPIC_ID

MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"


def partitions(count: int) -> frozenset[SharePartition]:
    return frozenset(SharePartition(TOPIC_ID, number) for number in range(count))


def test_few_partitions_are_fetched_together():
    rotation = PartitionRotation(MEMBER)
    few = partitions(2 * PART_SIZE - 1)

    assert few is rotation.next(few)
    assert not rotation.on_response(few, full=True)


@EXAMPLES
@given(st.integers(2 * PART_SIZE, 700), st.text("abcXYZ019-_", min_size=1))
def test_each_of_many_partitions_is_fetched_once_per_round(count: int, member_id: str):
    rotation = PartitionRotation(member_id)
    many = partitions(count)
    rounds = count // PART_SIZE
    parts = []
    for _ in range(rounds):
        parts.append(rotation.next(many))
        assert rotation.on_response(parts[-1], full=True)

    assert Counter(many) == Counter(p for part in parts for p in part)
    assert all(PART_SIZE <= len(part) < 2 * PART_SIZE for part in parts)
    assert parts[0] is rotation.next(many), "the rotation starts again"


def test_members_start_with_different_parts():
    many = partitions(500)

    assert 20 < len({PartitionRotation(f"member-{n}").next(many) for n in range(100)})


def test_full_fetches_double_after_each_part_with_few_records():
    rotation = PartitionRotation(MEMBER)
    many = partitions(50)
    parts = []
    for number in range(600):
        fetched = rotation.next(many)
        if rotation.on_response(fetched, full=fetched is many):
            parts.append(number)
    distances = [after - before - 1 for before, after in pairwise(parts)]

    assert 0 == parts[0]
    assert [1, 2, 4, 8, 16, 32, 64, MAX_FULL_FETCHES, MAX_FULL_FETCHES] == distances[:9]


def test_part_with_enough_records_resets_the_number_of_full_fetches():
    rotation = PartitionRotation(MEMBER)
    many = partitions(50)
    for _ in range(4):  # a part without records, all, a part without records, all
        rotation.on_response(rotation.next(many), full=False)
    rotation.next(many)
    assert rotation.on_response(rotation.next(many), full=True)
    assert rotation.on_response(rotation.next(many), full=False)

    assert many is rotation.next(many)
    assert many is not rotation.next(many)


@pytest.mark.parametrize("count", [24, 60])
def test_response_for_other_partitions_changes_nothing(count: int):
    rotation = PartitionRotation(MEMBER)
    before = rotation.next(partitions(50))
    now = partitions(count)
    rotation.next(now)

    assert not rotation.on_response(before, full=False)
    assert rotation.next(now) is not now
