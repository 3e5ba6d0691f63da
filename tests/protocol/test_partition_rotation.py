"""Many partitions, of which a fetch asks for some where much lies ready."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.fetch.session_manager import (
    MAX_FULL_FETCHES,
    PART_SIZE,
    PartitionRotation,
)
from sharecons.protocol.messages import SharePartition
from tests.protocol.hypothesis_profile import EXAMPLES
from tests.protocol.message_factories import TOPIC_ID

MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"


def those(count: int) -> frozenset[SharePartition]:
    return frozenset(SharePartition(TOPIC_ID, number) for number in range(count))


def test_few_partitions_are_asked_all_at_once():
    rotation = PartitionRotation(MEMBER)
    few = those(2 * PART_SIZE - 1)

    assert few is rotation.next(few)
    assert not rotation.on_response(few, full=True)


@EXAMPLES
@given(st.integers(2 * PART_SIZE, 700), st.text(min_size=1))
def test_each_of_many_has_its_turn(count: int, member_id: str):
    rotation = PartitionRotation(member_id)
    many = those(count)
    rounds = count // PART_SIZE
    parts = []
    for _ in range(rounds):
        parts.append(rotation.next(many))
        assert rotation.on_response(parts[-1], full=True)

    assert Counter(many) == Counter(p for part in parts for p in part)
    assert all(PART_SIZE <= len(part) < 2 * PART_SIZE for part in parts)
    assert parts[0] is rotation.next(many), "and then from the start"


def test_members_begin_at_different_parts():
    many = those(500)

    assert 20 < len({PartitionRotation(f"member-{n}").next(many) for n in range(100)})


def test_when_a_part_disappoints_all_are_asked_and_twice_as_often_each_time():
    rotation = PartitionRotation(MEMBER)
    many = those(50)
    tries = []
    for number in range(600):
        asked = rotation.next(many)
        if rotation.on_response(asked, full=asked is many):
            tries.append(number)
    between = [after - before - 1 for before, after in pairwise(tries)]

    assert 0 == tries[0]
    assert [1, 2, 4, 8, 16, 32, 64, MAX_FULL_FETCHES, MAX_FULL_FETCHES] == between[:9]


def test_a_part_that_brings_enough_takes_back_what_was_held_against_them():
    rotation = PartitionRotation(MEMBER)
    many = those(50)
    for _ in range(4):  # a part without records, all, a part without records, all
        rotation.on_response(rotation.next(many), full=False)
    rotation.next(many)
    assert rotation.on_response(rotation.next(many), full=True)
    assert rotation.on_response(rotation.next(many), full=False)

    assert many is rotation.next(many)
    assert many is not rotation.next(many)


@pytest.mark.parametrize("count", [24, 60])
def test_what_an_answer_to_other_partitions_brought_changes_nothing(count: int):
    rotation = PartitionRotation(MEMBER)
    before = rotation.next(those(50))
    now = those(count)
    rotation.next(now)

    assert not rotation.on_response(before, full=False)
    assert rotation.next(now) is not now
