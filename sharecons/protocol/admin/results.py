"""Results of requests for several keys: for each key its value or its error.

Rule 1: the error of one group or partition does not affect the others.
Rule 2: nothing here depends on the kind of request.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Generic, TypeVar, cast, final

from sharecons.errors import Error, fresh

__all__ = ["Result", "Results"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@final
class Result(Generic[T]):
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
        """The value; raises the error if there is none."""
        if self.error is not None:
            raise fresh(self.error)
        return cast("T", self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return self._value == other._value and self.error is other.error

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        what = self._value if self.error is None else self.error
        return f"Result({what!r})"


@final
class Results(Mapping[K, Result[V]]):
    """The result of each key of a request, in the order of the request.

    `results[key].value` returns a value or raises its error. `found` has only the
    values, `errors` only the errors; both are made once, as loops over keys read them.
    """

    def __init__(self, results: Mapping[K, Result[V]]) -> None:
        self._results = dict(results)

    def __getitem__(self, key: K) -> Result[V]:
        return self._results[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @cached_property
    def found(self) -> Mapping[K, V]:
        """The values, by key."""
        return {key: one.value for key, one in self.items() if one.error is None}

    @cached_property
    def errors(self) -> Mapping[K, Error]:
        """The errors, by key."""
        return {key: one.error for key, one in self.items() if one.error is not None}

    @property
    def ok(self) -> bool:
        """True if there are no errors."""
        return not self.errors

    @property
    def common_error(self) -> Error | None:
        """The error that all keys share, if any, as when their group has members."""
        errors = [one.error for one in self.values()]
        same = errors and all(error is errors[0] for error in errors)
        return errors[0] if same else None

    def check(self) -> "Results[K, V]":
        """Return itself; raise the first error if there is one."""
        for error in self.errors.values():
            raise fresh(error)
        return self

    def map(self, change: Callable[[V], T]) -> "Results[K, T]":
        """Return results with `change` applied to each value, and the same errors."""
        return Results(
            {
                key: Result(change(one.value) if one.error is None else None, one.error)
                for key, one in self.items()
            }
        )

    def __repr__(self) -> str:
        return f"Results({self._results!r})"
