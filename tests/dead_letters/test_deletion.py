"""Deleting dead letters before an offset."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from sharecons import ShareGroupAdmin
from sharecons.dead_letters import DeadLetters, NotRedrivenError
from sharecons.errors import BrokerError, ConfigurationError
from sharecons.protocol.codes import Code
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend
from tests.dead_letters.letters import (
    DEAD,
    marks_of,
    new_letter,
    produce_letters,
)
from tests.net.interrupts import interruptions

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=2)
        broker.create_topic("archive", partitions=2)
        broker.create_topic(DEAD, partitions=2)
        produce_letters(broker, map(new_letter, range(12)), partitions=2)
        yield broker


async def offsets(letters: DeadLetters) -> list[list[int]]:
    """Return the offsets of each partition."""
    found: list[list[int]] = [[], []]
    async for letter in letters.read():
        found[letter.partition].append(letter.offset)
    return found


ALL = [list(range(6)), list(range(6))]


async def test_redriven_dead_letters_are_deleted_before_an_offset(
    letters: DeadLetters,
) -> None:
    await letters.redrive()

    deleted = await letters.delete({0: 4, 1: 1})

    assert [[4, 5], [1, 2, 3, 4, 5]] == await offsets(letters)
    assert [(0, 4, 4, 0, None), (1, 1, 1, 0, None)] == [
        (e.partition, e.before, e.letters, e.not_redriven, e.first_not_redriven)
        for e in deleted.found.values()
    ]
    again = await letters.delete({0: 4, 1: 1})
    assert [0, 0] == [each.letters for each in again.found.values()]


async def test_nothing_is_deleted_if_one_was_not_redriven(
    letters: DeadLetters,
) -> None:
    await letters.redrive(only=[(0, 0), (0, 1), (1, 0), (1, 2)])

    with pytest.raises(
        NotRedrivenError,
        match=r"1 of 3 dead letters of orders\.dead-1 before offset 3 .* at offset 1",
    ):
        await letters.delete({0: 2, 1: 3})
    assert ALL == await offsets(letters)
    await letters.delete({0: 2, 1: 3}, not_redriven=True)
    assert [[2, 3, 4, 5], [3, 4, 5]] == await offsets(letters)


async def test_dead_letters_that_any_name_has_redriven_are_deleted(
    letters: DeadLetters,
) -> None:
    await letters.redrive(only=[(0, 0)])
    await letters.redrive(to="archive", only=[(0, 1)])

    await letters.delete({0: 2})

    assert [[2, 3, 4, 5], ALL[1]] == await offsets(letters)


async def test_duplicate_of_a_redriven_dead_letter_is_deleted(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    await letters.redrive()
    produce_letters(broker, [new_letter(1), new_letter(0)], partitions=2)

    assert 0 == (await letters.plan_delete({0: 7}))[0].not_redriven
    await letters.delete({0: 7, 1: 7})

    assert [[], []] == await offsets(letters)


async def test_dead_letters_of_an_interrupted_batch_are_not_deleted(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    with broker.faults.on("Produce", times=1).lose(), anyio.move_on_after(1.0):
        await letters.redrive()

    with pytest.raises(NotRedrivenError, match="6 of 6"):
        await letters.delete({0: 6})
    await letters.redrive()
    await letters.delete({0: 6})
    assert 0 == (await letters.redrive()).redriven

    marks = await marks_of(admin, "orders")
    assert (12, {1}) == (len(marks), set(marks.values()))


async def test_redrive_after_forced_deletion_in_an_interrupted_batch_continues(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    with (
        broker.faults.on("Produce", times=1).refuse(
            "TOPIC_AUTHORIZATION_FAILED", each=True
        ),
        suppress(BrokerError),
    ):
        await letters.redrive()
    await letters.delete({0: 3}, not_redriven=True)

    summary = await letters.redrive()

    assert (0, 9) == (summary.remaining, summary.redriven + summary.already_written)
    assert {1} == set((await marks_of(admin, "orders")).values())
    assert {} == (await letters.redrive()).skipped


async def test_plan_deletes_nothing(letters: DeadLetters) -> None:
    await letters.redrive(only=[(0, 1)])

    planned = await letters.plan_delete({0: 3})

    assert (3, 2, 0) == (
        planned[0].letters,
        planned[0].not_redriven,
        planned[0].first_not_redriven,
    )
    assert ALL == await offsets(letters)


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ({0: 7}, r"orders\.dead-0 ends at offset 6"),
        ({2: 0}, "has no partition 2: its partitions are 0 to 1"),
        ({0: -1}, "offset -1 is not a whole number"),
    ],
)
async def test_offset_that_is_not_in_the_log_is_rejected(
    letters: DeadLetters, before: dict[int, int], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await letters.delete(before, not_redriven=True)
    assert ALL == await offsets(letters)


async def test_error_of_one_partition_does_not_affect_the_other(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    def reject_first(response: Any, _: object) -> Any:
        (topic,) = response["topics"]
        topic["partitions"][0]["error_code"] = Code.POLICY_VIOLATION
        return response

    await letters.redrive()
    with broker.faults.on("DeleteRecords").change(reject_first):
        deleted = await letters.delete({0: 2, 1: 2})

    assert "POLICY_VIOLATION" in str(deleted[0].error)
    assert [1] == list(deleted.found)


@pytest.mark.parametrize("after", [True, False])
async def test_lost_connection_is_survived(
    broker: EmbeddedBroker, letters: DeadLetters, after: bool
) -> None:
    await letters.redrive()
    broker.faults.on("DeleteRecords", times=2).cut(after=after)

    await letters.delete({0: 2, 1: 3})

    assert [[2, 3, 4, 5], [3, 4, 5]] == await offsets(letters)


@pytest.mark.slow("a deletion for each await")
async def test_deletion_cancelled_at_any_await_is_repeated(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    await letters.redrive()

    async def attempt(interrupted: Callable[[Awaitable[Any]], Awaitable[Any]]) -> None:
        await interrupted(letters.delete({0: 2}))
        assert (await offsets(letters))[0] in (ALL[0], [2, 3, 4, 5])

    steps = [step async for step in interruptions(attempt)]

    assert len(steps) > 20
    await letters.delete({0: 2})
    assert [[2, 3, 4, 5], ALL[1]] == await offsets(letters)
