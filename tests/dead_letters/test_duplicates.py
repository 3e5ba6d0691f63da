"""Records that were dead-lettered twice, from a duplicate delivery."""

from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import pytest

from sharecons import ShareGroupAdmin
from sharecons.dead_letters import DeadLetters, LetterOffset, parse_filter
from sharecons.dead_letters.origins import Origins
from sharecons.dead_letters.plan import Decision, Skip, SkipReason
from sharecons.errors import BrokerError
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend
from tests.dead_letters.letters import (
    DEAD,
    new_letter,
    origin_of,
    produce_letters,
    records_of,
)

pytestmark = pytest.mark.anyio

SKIPPED = "another dead letter of its record was redriven"


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=2)
        broker.create_topic(DEAD, partitions=2)
        yield broker


def write_some(broker: EmbeddedBroker, *numbers: int, partitions: int = 1) -> None:
    produce_letters(broker, map(new_letter, numbers), partitions=partitions)


async def values_of(admin: ShareGroupAdmin, topic: str = "orders") -> list[bytes]:
    return sorted(each.value or b"" for each in await records_of(admin, topic))


async def redriven_offsets(letters: DeadLetters) -> list[tuple[int, int]]:
    return [each.letter_offset async for each in letters.read(redriven=True)]


def test_origins_with_other_timestamps_are_other_records() -> None:
    origins = Origins()
    origins.add(origin_of(0), LetterOffset(0, 5))
    origins.add(origin_of(0, timestamp=9), LetterOffset(0, 6))

    assert (0, 5) == origins.find(origin_of(0, group="other", reason="other"))
    assert (0, 6) == origins.find(origin_of(0, timestamp=9))
    assert (0, 5) == origins.find(origin_of(0, timestamp=None))
    assert origins.find(origin_of(0, timestamp=8)) is None
    assert origins.find(origin_of(2)) is None
    assert origins.find(None) is None


def test_discarded_dead_letter_is_not_found() -> None:
    origins = Origins()
    origins.add(origin_of(0), LetterOffset(0, 5))

    origins.discard(origin_of(0), LetterOffset(0, 6))
    assert (0, 5) == origins.find(origin_of(0))
    origins.discard(origin_of(0), LetterOffset(0, 5))
    origins.discard(origin_of(1), LetterOffset(0, 5))
    assert origins.find(origin_of(0)) is None


@pytest.mark.parametrize("partitions", [1, 2])
async def test_duplicates_are_redriven_once_in_a_run(
    broker: EmbeddedBroker,
    admin: ShareGroupAdmin,
    letters: DeadLetters,
    partitions: int,
) -> None:
    write_some(broker, 0, 1, 1, 0, 2, partitions=partitions)

    summary = await letters.redrive()

    assert (3, {SKIPPED: 2}, ()) == (summary.redriven, summary.skipped, summary.errors)
    assert [b"v0", b"v1", b"v2"] == await values_of(admin)
    assert 5 == len(await redriven_offsets(letters))
    assert {} == (await letters.redrive()).skipped


async def test_duplicate_of_what_was_redriven_before_is_not_redriven(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 0, 1)
    await letters.redrive()
    write_some(broker, 1, 2)

    summary = await letters.redrive()

    assert (1, {SKIPPED: 1}) == (summary.redriven, summary.skipped)
    assert [b"v0", b"v1", b"v2"] == await values_of(admin)


async def test_later_duplicate_is_redriven_if_the_first_is_filtered(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    produce_letters(broker, [new_letter(0), new_letter(0, group="shipping")])

    first = await letters.redrive(filter=parse_filter("group=shipping"))
    second = await letters.redrive()

    assert (1, 0) == (first.redriven, second.redriven)
    assert {SKIPPED: 1} == second.skipped
    assert [b"v0"] == await values_of(admin)


async def test_record_of_a_new_topic_with_the_same_offset_is_no_duplicate(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    produce_letters(broker, [new_letter(0), new_letter(0, timestamp=1)])

    assert 2 == (await letters.redrive()).redriven


async def test_duplicate_of_a_rejected_dead_letter_is_not_marked(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    broker.create_topic("small", partitions=1, config={"max.message.bytes": "2000"})
    large = new_letter(1)._replace(value=b"x" * 5000)
    produce_letters(broker, [large, large, new_letter(2)], partitions=2)
    produce_letters(broker, [large])

    for expected in (1, 0):
        assert expected == (await letters.redrive(to="small")).redriven
    assert [(0, 1)] == await redriven_offsets(letters)


async def test_selected_duplicate_is_redriven_with_again_only(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 0, 0)
    await letters.redrive(only=[(0, 0)])

    assert 0 == (await letters.redrive(only=[(0, 1)])).redriven
    assert 1 == (await letters.redrive(only=[(0, 1)], again=True)).redriven
    assert [b"v0", b"v0"] == await values_of(admin)


@pytest.mark.parametrize("lost", [True, False])
async def test_duplicate_of_an_interrupted_batch_is_not_redriven(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters, lost: bool
) -> None:
    """Partition 1 was interrupted; partition 0, with the duplicates, comes first."""
    produce_letters(broker, [new_letter(9), *map(new_letter, range(4))], partitions=2)
    offsets = [(1, 0), (1, 1)]
    matcher = broker.faults.on("Produce", times=1)
    fault = (
        matcher.lose()
        if lost
        else matcher.refuse("TOPIC_AUTHORIZATION_FAILED", each=True)
    )
    with fault, anyio.move_on_after(1.0), suppress(BrokerError):
        await letters.redrive(only=offsets)
    assert [] == await redriven_offsets(letters)
    write_some(broker, 0, 2)

    summary = await letters.redrive()

    assert {SKIPPED: 2} == summary.skipped
    expected = [b"v0", b"v1", b"v2", b"v3", b"v9"]
    assert expected == await values_of(admin)


async def test_dry_run_skips_duplicates(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    write_some(broker, 0, 0)
    decisions: list[Decision] = []

    summary = await letters.plan_redrive(lambda _, one: decisions.append(one))

    assert (1, {SKIPPED: 1}) == (summary.redriven, summary.skipped)
    assert Skip(SkipReason.DUPLICATE, "0:0") == decisions[1]


async def test_read_returns_the_first_dead_letter_of_a_duplicate(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    write_some(broker, 0, 1, 0, 1, 0, partitions=2)
    write_some(broker, 5)

    found = [(e.letter_offset, e.duplicate_of) async for e in letters.read()]

    assert [
        ((0, 0), None),
        ((0, 1), (0, 0)),
        ((0, 2), (0, 0)),
        ((0, 3), None),
        ((1, 0), None),
        ((1, 1), (1, 0)),
    ] == found
