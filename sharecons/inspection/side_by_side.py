"""Questions asked side by side, each with its own answer or error."""

from collections.abc import Awaitable
from typing import TypeVar

import anyio

from sharecons.errors import Error
from sharecons.protocol.outcomes import Outcome

__all__ = ["side_by_side"]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


async def side_by_side(
    first: Awaitable[A], second: Awaitable[B], third: Awaitable[C]
) -> tuple[Outcome[A], Outcome[B], Outcome[C]]:
    """Wait for three questions; an error of one does not end the others."""
    one: list[Outcome[A]] = []
    two: list[Outcome[B]] = []
    three: list[Outcome[C]] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_wait, first, one)
        tasks.start_soon(_wait, second, two)
        tasks.start_soon(_wait, third, three)
    return one[0], two[0], three[0]


async def _wait(question: Awaitable[A], into: list[Outcome[A]]) -> None:
    try:
        into.append(Outcome(await question))
    except Error as error:
        into.append(Outcome(error=error))
