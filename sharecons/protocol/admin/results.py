"""What became of each thing that was asked: it, or the error in its place.

Rule 1: one group's or partition's error is its own, and hides nothing of the others.
Rule 2: nothing here knows what was asked.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, cast, final

from sharecons.errors import Error, fresh

__all__ = ["Outcome", "Results"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@final
class Outcome(Generic[T]):
    """Either a value or an error.

    Attributes:
        error: why there is no value, or None.
    """

    __slots__ = ("_value", "error")

    def __init__(self, value: T | None = None, error: Error | None = None) -> None:
        self._value = value
        self.error = error

    @property
    def ok(self) -> bool:
        """True if there is a value."""
        return self.error is None

    @property
    def value(self) -> T:
        """The value; where there is none, the error is raised."""
        if self.error is not None:
            raise fresh(self.error)
        return cast("T", self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcome):
            return NotImplemented
        return self._value == other._value and self.error is other.error

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        what = self._value if self.error is None else self.error
        return f"Outcome({what!r})"


@final
class Results(Mapping[K, Outcome[V]]):
    """The outcome of each thing that was asked about, in the order of asking.

    `results[key].value` gives a thing or raises its error; `found` and `errors`
    take the two apart.
    """

    __slots__ = ("_outcomes",)

    def __init__(self, outcomes: Mapping[K, Outcome[V]]) -> None:
        self._outcomes = dict(outcomes)

    def __getitem__(self, key: K) -> Outcome[V]:
        return self._outcomes[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    @property
    def found(self) -> dict[K, V]:
        """What went well, without what did not."""
        return {key: one.value for key, one in self.items() if one.error is None}

    @property
    def errors(self) -> dict[K, Error]:
        """What did not go well, and why."""
        return {key: one.error for key, one in self.items() if one.error is not None}

    @property
    def ok(self) -> bool:
        """True if everything went well."""
        return not self.errors

    @property
    def common_error(self) -> Error | None:
        """The one error that stands for all of it, as when the group is refused."""
        errors = [one.error for one in self.values()]
        same = errors and all(error is errors[0] for error in errors)
        return errors[0] if same else None

    def check(self) -> "Results[K, V]":
        """Give itself; if something did not go well, raise the first error."""
        for error in self.errors.values():
            raise fresh(error)
        return self

    def map(self, change: Callable[[V], T]) -> "Results[K, T]":
        """The same with each value changed; errors stay."""
        return Results(
            {
                key: Outcome(
                    change(one.value) if one.error is None else None, one.error
                )
                for key, one in self.items()
            }
        )

    def __repr__(self) -> str:
        return f"Results({self._outcomes!r})"
