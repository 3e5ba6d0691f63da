"""The verdict about redriven dead letters, from the logs of both topics."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.chaos.reading import LogRecord

__all__ = ["Redrives"]

MAX_REDRIVES: Final = 3
"""How often `sharecons dead-letters redrive` returns a record, by default."""

OF: Final = "sharecons.redrive.of"
COUNT: Final = "sharecons.redrives"
ORIGIN: Final = (
    "sharecons.origin.topic",
    "sharecons.origin.partition",
    "sharecons.origin.offset",
    "sharecons.origin.timestamp",
)


@dataclass(frozen=True)
class _Letter:
    number: int
    redrives: int
    origin: tuple[str, ...]


class Redrives:
    """Compares the dead letters of a topic with the records that were redriven.

    A record and each of its redriven copies has one end: it is processed, rejected, or
    a dead letter. A dead letter is redriven once, unless it was redriven three times.

    Args:
        records: of the source topic.
        letters: of the dead-letter topic.
        without: numbers whose records were deleted with the topic.
    """

    def __init__(
        self,
        records: Iterable[LogRecord],
        letters: Iterable[LogRecord],
        without: Collection[int] = (),
    ) -> None:
        self._marks: Counter[str] = Counter()
        self._copies: Counter[int] = Counter()
        for record in records:
            if OF in record.headers:
                self._marks[record.headers[OF]] += 1
                self._copies[record.number] += 1
        self._letters: defaultdict[int, set[_Letter]] = defaultdict(set)
        for letter in letters:
            origin = tuple(letter.headers.get(name, "") for name in ORIGIN)
            redrives = int(letter.headers.get(COUNT, 0))
            found = _Letter(letter.number, redrives, origin)
            self._letters[letter.number].add(found)
        self._without = frozenset(without)

    @property
    def twice(self) -> list[str]:
        """The dead letters that were redriven more than once."""
        return sorted(mark for mark, count in self._marks.items() if count > 1)

    def not_redriven(self) -> set[int]:
        """Return the numbers with dead letters that no redrive has returned."""
        return {
            number
            for number, letters in self._letters.items()
            if number not in self._without
            and self._copies[number]
            < sum(each.redrives < MAX_REDRIVES for each in letters)
        }

    def without_end(self, ends: Mapping[int, int]) -> set[int]:
        """Return the numbers with a redriven copy of which nothing has become.

        Args:
            ends: how often each number was processed or rejected.
        """
        return {
            number
            for number, copies in self._copies.items()
            if number not in self._without
            and ends.get(number, 0) + len(self._letters[number]) < 1 + copies
        }

    def notes(self) -> list[str]:
        again = Counter(
            max(letter.redrives for letter in each) for each in self._letters.values()
        )
        text = ", ".join(f"{n} {times} times" for times, n in sorted(again.items()))
        return [f"{self._marks.total()} redriven; dead letters were redriven: {text}"]
