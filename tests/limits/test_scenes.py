"""The sizes that tests/limits measures."""

import pytest

from tests.limits.scenes import AXES, Scene, scenes


def sizes(scene: Scene) -> tuple[int, int, int, int]:
    """Return the numbers of partitions, topics, members and groups."""
    partitions = sum(scene.topics.values())
    return partitions, len(scene.topics), len(scene.seats), len(scene.groups)


@pytest.mark.parametrize(
    ("axis", "small", "large"),
    [
        ("partitions", (100, 1, 1, 1), (1000, 1, 1, 1)),
        ("topics", (20, 20, 1, 1), (200, 200, 1, 1)),
        ("members", (100, 1, 10, 1), (100, 1, 100, 1)),
        ("groups", (10, 1, 10, 10), (10, 1, 100, 100)),
        ("all", (100, 20, 10, 10), (1000, 200, 100, 100)),
    ],
)
def test_scene_of_an_axis_has_its_sizes(
    axis: str, small: tuple[int, ...], large: tuple[int, ...]
) -> None:
    assert [small, large] == [sizes(scene) for scene in scenes([axis], [0.1, 1.0])]


@pytest.mark.parametrize("axis", AXES)
def test_topics_of_all_members_are_the_topics_of_the_scene(axis: str) -> None:
    (scene,) = scenes([axis], [0.3])
    assert {topic for seat in scene.seats for topic in seat.topics} == set(scene.topics)


def test_partitions_of_topics_are_in_turn() -> None:
    scene = Scene("all", 4, {"a": 2, "b": 2}, ())
    assert [("a", 0), ("b", 0), ("a", 1), ("b", 1)] == scene.partitions
