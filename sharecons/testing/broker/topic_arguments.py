"""Checks of the arguments of `EmbeddedBroker` that describe topics."""

from collections.abc import Mapping

__all__ = ["check_topic", "check_topics"]


def check_topics(topics: Mapping[str, int] | None) -> dict[str, int]:
    """Return names of topics and their numbers of partitions.

    Raises:
        TypeError: it is no mapping.
    """
    if topics is None:
        return {}
    if not isinstance(topics, Mapping):
        raise TypeError(
            "topics must map names to numbers of partitions, as in {'orders': 6}, "
            f"not {topics!r}"
        )
    for name, partitions in topics.items():
        check_topic(name, partitions)
    return dict(topics)


def check_topic(name: str, partitions: int) -> None:
    """Raise TypeError if the name is no str, or the number of partitions no int."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a topic must be a str, not {name!r}")
    if not isinstance(partitions, int):
        raise TypeError(
            f"topic {name!r}: the number of partitions must be an int, "
            f"not {partitions!r}"
        )
