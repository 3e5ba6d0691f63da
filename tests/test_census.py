"""The census of a process, and growth from one census to another."""

import asyncio
from collections import deque

import pytest

from tests.census import entries_of, grown, take_census


class Slotted:
    __slots__ = ("missing", "queue")

    def __init__(self) -> None:
        self.queue = deque([1, 2, 3])


class Planted(Slotted):
    """An object that counts as one of the package."""

    def __init__(self) -> None:
        super().__init__()
        self.by_topic = {"orders": {0, 1}, "refunds": [{"a": 1}]}
        self.text = "no container"


Planted.__module__ = "sharecons.planted"


def test_entries_of_nested_containers_and_of_slots_are_counted():
    name = f"sharecons.planted.{Planted.__qualname__}"

    assert {
        f"entries of {name}.by_topic": 2 + 2 + 1 + 1,
        f"entries of {name}.queue": 3,
    } == entries_of(Planted())


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.slow("looks at all objects of the process")
async def test_objects_and_their_entries_are_in_a_census_while_they_live():
    planted = Planted()
    before = take_census()
    planted.by_topic["payments"] = [1]
    more = [Planted() for _ in range(5)]
    after = take_census()
    del more
    last = take_census()

    name = f"sharecons.planted.{Planted.__qualname__}"
    assert 2 + 5 * 6 == (
        after[f"entries of {name}.by_topic"] - before[f"entries of {name}.by_topic"]
    )
    assert 5 == after[f"objects of {name}"] - before[f"objects of {name}"]
    assert last[f"objects of {name}"] == before[f"objects of {name}"]
    assert len(asyncio.all_tasks()) == before["tasks"]
    assert not grown([before], [last])


def test_number_that_varies_has_not_grown():
    early = [{"leases": 4}, {"leases": 17}, {"leases": 9}]
    late = [{"leases": 16}, {"leases": 5}, {"leases": 18}]

    assert [] == grown(early, late)


def test_number_that_is_always_higher_has_grown():
    early = [{"leases": 4, "topics": 1}, {"leases": 17, "topics": 2}]
    late = [{"leases": 21, "topics": 40, "new": 3}, {"leases": 30, "topics": 41}]

    assert [
        "topics: up to 2, then 40 or more",
        "leases: up to 17, then 21 or more",
    ] == grown(early, late)
