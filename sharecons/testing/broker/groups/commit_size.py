"""The size of a commit in the log of Kafka's group coordinator.

A commit is one batch of that log. If it is larger than the maximum, the whole commit
fails, as UNKNOWN_SERVER_ERROR (measured on Kafka 4.4.0; the sizes are its own too).
"""

from collections.abc import Iterable
from typing import Final

__all__ = ["commit_size"]

BATCH_HEADER: Final = 61
KEY: Final = 10
"""Version, lengths of group and topic, and partition."""
VALUE: Final = 41
"""Version, offset, leader epoch, timestamp, tags and topic id."""
RECORD: Final = 4
"""Attributes, timestamp, length of the key, and number of headers."""


def commit_size(group_id: str, offsets: Iterable[tuple[str, str]]) -> int:
    """Return the number of bytes of a commit: one record for each offset.

    Args:
        group_id: the group that commits.
        offsets: the topic and the metadata of each offset.
    """
    sizes = (
        _record_size(index, KEY + _size(group_id) + _size(topic), _size(metadata))
        for index, (topic, metadata) in enumerate(offsets)
    )
    return BATCH_HEADER + sum(sizes)


def _record_size(index: int, key: int, metadata: int) -> int:
    value = VALUE + _varint_size(metadata + 1) + metadata
    record = RECORD + _varint_size(2 * index) + key + _varint_size(2 * value) + value
    return _varint_size(2 * record) + record


def _size(text: str) -> int:
    return len(text.encode())


def _varint_size(number: int) -> int:
    """Return the size of an unsigned number; signed ones are doubled (zigzag)."""
    return max(1, (number.bit_length() + 6) // 7)
