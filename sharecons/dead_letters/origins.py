"""The origins of dead letters, to recognize a record that was dead-lettered twice.

A record that is delivered twice can become two dead letters with the same origin topic,
partition and offset. Timestamps are compared as well, if both are known: a topic that
was deleted and created again has other records at the same offsets.
"""

from dataclasses import replace
from typing import NamedTuple, TypeAlias

from sharecons.copies.dead_letter_headers import Origin
from sharecons.dead_letters.models import DeadLetterRecord, LetterOffset

__all__ = ["Origins"]


class _Known(NamedTuple):
    timestamp: int | None
    partition: int
    offset: int


ByOffset: TypeAlias = dict[int, tuple[_Known, ...]]


class Origins:
    """The first dead letter of each origin; about 300 bytes of memory for each."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], ByOffset] = {}

    def find(self, origin: Origin | None) -> LetterOffset | None:
        """Return the dead letter that has been added with an origin, or None."""
        if origin is None:
            return None
        by_offset = self._found.get((origin.topic, origin.partition), {})
        for known in by_offset.get(origin.offset, ()):
            if _is_same(known.timestamp, origin.timestamp):
                return LetterOffset(known.partition, known.offset)
        return None

    def add(self, origin: Origin | None, letter: LetterOffset) -> None:
        """Add a dead letter; one without an origin is ignored."""
        if origin is None or self.find(origin) is not None:
            return
        by_offset = self._found.setdefault((origin.topic, origin.partition), {})
        known = _Known(origin.timestamp, *letter)
        by_offset[origin.offset] = (*by_offset.get(origin.offset, ()), known)

    def add_to(self, letter: DeadLetterRecord) -> DeadLetterRecord:
        """Add the next dead letter; return it with `duplicate_of`."""
        first = self.find(letter.origin)
        if first is not None:
            return replace(letter, duplicate_of=first)
        self.add(letter.origin, letter.letter_offset)
        return letter

    def discard(self, origin: Origin | None, letter: LetterOffset) -> None:
        """Remove a dead letter, so that another one with its origin is the first."""
        if origin is None:
            return
        by_offset = self._found.get((origin.topic, origin.partition), {})
        known = by_offset.get(origin.offset, ())
        by_offset[origin.offset] = tuple(
            each for each in known if (each.partition, each.offset) != letter
        )


def _is_same(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other
