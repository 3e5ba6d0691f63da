"""Concurrent requests, each with its own result or error."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

import anyio

from sharecons.admin import Results
from sharecons.errors import Error
from sharecons.protocol.admin.results import Result

__all__ = ["failed", "gather", "outcome_of", "read_each", "run_all"]

MAX_CONCURRENT: Final = 8

A = TypeVar("A")
B = TypeVar("B")
K = TypeVar("K")


def failed(keys: Iterable[K], error: Error) -> Results[K, Any]:
    """Return the same error for each key."""
    return Results({key: Result(error=error) for key in keys})


async def gather(
    first: Awaitable[A], second: Awaitable[B]
) -> tuple[Result[A], Result[B]]:
    """Await both concurrently; an error of one does not cancel the other."""
    one: list[Result[A]] = []
    two: list[Result[B]] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_wait, first, one)
        tasks.start_soon(_wait, second, two)
    return one[0], two[0]


def outcome_of(results: Result[Results[str, A]], name: str) -> Result[A]:
    """Return the outcome of one name, or the error of all."""
    if results.error is not None:
        return Result(error=results.error)
    return results.value[name]


async def _wait(awaitable: Awaitable[A], into: list[Result[A]]) -> None:
    try:
        into.append(Result(await awaitable))
    except Error as error:
        into.append(Result(error=error))


async def run_all(function: Callable[[A], Awaitable[None]], items: Iterable[A]) -> None:
    """Call a function with each item, for a few items concurrently."""
    waiting = iter(items)

    async def run() -> None:
        for item in waiting:
            await function(item)

    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_CONCURRENT):
            tasks.start_soon(run)


async def read_each(
    keys: Iterable[K], read: Callable[[K], Awaitable[A]]
) -> dict[K, Result[A]]:
    """Return what a function returns for each key, or its error."""
    results: dict[K, Result[A]] = {}

    async def read_one(key: K) -> None:
        try:
            results[key] = Result(await read(key))
        except Error as error:
            results[key] = Result(error=error)

    wanted = tuple(keys)
    await run_all(read_one, wanted)
    return {key: results[key] for key in wanted}
