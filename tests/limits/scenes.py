"""The sizes of a run."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["AXES", "Scene", "Seat", "scenes"]

AXES: Final = {
    "partitions": 1000,
    "topics": 200,
    "members": 100,
    "groups": 100,
    "all": 1000,
}
"""The axes, and the largest size of each; of `all`, the number of partitions."""

SPREAD: Final = 100
"""Partitions of the one topic of several members: with the largest group, one each."""

FEW: Final = 10
"""Partitions of the one topic of several groups."""


class Seat(NamedTuple):
    """One member: its group, and the topics it subscribes to."""

    group: str
    topics: tuple[str, ...]


class Scene(NamedTuple):
    """One size of an axis.

    Attributes:
        axis: a name of AXES.
        size: of the axis.
        topics: partitions by topic.
        seats: the members.
    """

    axis: str
    size: int
    topics: dict[str, int]
    seats: tuple[Seat, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(seat.group for seat in self.seats))

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """All partitions, so that consecutive ones are of different topics."""
        found = [
            (number, topic)
            for topic, count in self.topics.items()
            for number in range(count)
        ]
        return [(topic, number) for number, topic in sorted(found)]

    @property
    def newcomer(self) -> Seat:
        """A further member of the first group."""
        return self.seats[0]

    def __str__(self) -> str:
        return (
            f"{self.axis} {self.size}: {sum(self.topics.values())} partitions, "
            f"{len(self.topics)} topics, {len(self.seats)} members, "
            f"{len(self.groups)} groups"
        )


def scenes(axes: Iterable[str], fractions: Sequence[float]) -> Iterator[Scene]:
    """Yield each axis at these fractions of its largest size."""
    for axis in axes:
        for fraction in fractions:
            yield _scene(axis, max(1, round(AXES[axis] * fraction)), fraction)


def _scene(axis: str, size: int, fraction: float) -> Scene:
    match axis:
        case "partitions":
            return Scene(axis, size, {"topic-0": size}, _seats(1, ["topic-0"]))
        case "topics":
            topics = {f"topic-{number}": 1 for number in range(size)}
            return Scene(axis, size, topics, _seats(1, topics))
        case "members":
            return Scene(axis, size, {"topic-0": SPREAD}, _seats(size, ["topic-0"]))
        case "groups":
            seats = [Seat(f"group-{number}", ("topic-0",)) for number in range(size)]
            return Scene(axis, size, {"topic-0": FEW}, tuple(seats))
        case _:
            return _everything(axis, size, fraction)


def _seats(members: int, topics: Iterable[str]) -> tuple[Seat, ...]:
    return (Seat("group-0", tuple(topics)),) * members


def _everything(axis: str, size: int, fraction: float) -> Scene:
    """Return a scene in which each group has topics of its own, as services do."""
    count = max(2, round(AXES["topics"] * fraction))
    members = max(1, round(AXES["groups"] * fraction))
    names = [f"topic-{number}" for number in range(count)]
    topics = {name: max(1, size // count) for name in names}
    seats = [Seat(f"group-{at}", tuple(names[at::members])) for at in range(members)]
    return Scene(axis, size, topics, tuple(seats))
