"""The errors of reading the state of groups."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from sharecons.errors import Error
from sharecons.group_state.group_states import Source
from sharecons.protocol.admin.results import Results

__all__ = ["Errors"]

K = TypeVar("K")
V = TypeVar("V")


class Errors:
    """The errors of one collection, by source."""

    def __init__(self) -> None:
        self._errors: list[tuple[Source, Error]] = []

    def add(self, source: Source, errors: Iterable[Error]) -> None:
        self._errors.extend((source, error) for error in errors)

    def added(self, source: Source, results: Results[K, V]) -> Results[K, V]:
        """Return the results, and add their errors."""
        self.add(source, results.errors.values())
        return results

    def of(self, source: Source) -> tuple[Error, ...]:
        return tuple(error for each, error in self._errors if each == source)

    @property
    def counts(self) -> Mapping[Source, int]:
        return Counter(source for source, _ in self._errors)

    @property
    def messages(self) -> tuple[str, ...]:
        """The texts, without duplicates."""
        return tuple(dict.fromkeys(str(error) for _, error in self._errors))
