"""Which dead letters are marked as redriven, and what further runs redrive."""

from collections.abc import AsyncIterator

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.dead_letters import (
    DeadLetterRecord,
    DeadLetters,
    LetterOffset,
    MarksFullError,
    parse_filter,
)
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.dead_letters.plan import Decision
from sharecons.dead_letters.progress import Progress, decode_metadata, encode_metadata
from sharecons.errors import BrokerError, ConfigurationError
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend
from tests.dead_letters.letters import (
    DEAD,
    marks_of,
    new_letter,
    produce_letters,
    records_of,
)

pytestmark = pytest.mark.anyio

GROUP = f"sharecons-redrive.{DEAD}"
HERE = TopicPartition(DEAD, 0)


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=2)
        broker.create_topic("other", partitions=2)
        broker.create_topic(DEAD, partitions=1)
        yield broker


def write_some(broker: EmbeddedBroker, *numbers: int) -> None:
    produce_letters(broker, map(new_letter, numbers))


def write_six(broker: EmbeddedBroker) -> None:
    """Write dead letters 0 to 5; every third one is of another group."""
    produce_letters(
        broker,
        [
            new_letter(number, group="billing" if number % 3 else "shipping")
            for number in range(6)
        ],
    )


async def redriven_offsets(letters: DeadLetters) -> list[int]:
    return [each.offset async for each in letters.read(redriven=True)]


async def marks(admin: ShareGroupAdmin) -> OffsetRanges:
    listed = (await admin.list_consumer_group_offsets(GROUP))[GROUP].value
    committed = listed[HERE].value
    assert committed is not None
    return decode_metadata(committed.offset, committed.metadata).marks


async def times_redriven(admin: ShareGroupAdmin) -> dict[int, int]:
    """Return how often each dead letter is in its origin's topic."""
    found = await marks_of(admin, "orders")
    return {offset: count for (_, _, offset), count in found.items()}


async def test_run_after_a_filtered_one_redrives_the_rest_once(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)

    first = await letters.redrive(filter=parse_filter("group=billing"))
    second = await letters.redrive(filter=parse_filter("key=k3"))
    third = await letters.redrive()

    assert [(4, 2, 0), (1, 1, 0), (1, 0, 0)] == [
        (each.redriven, each.filtered, each.remaining)
        for each in (first, second, third)
    ]
    assert dict.fromkeys(range(6), 1) == await times_redriven(admin)


async def test_read_returns_which_dead_letters_were_redriven(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    write_six(broker)
    await letters.redrive(filter=parse_filter("group=billing"))
    await letters.redrive(to="other", filter=parse_filter("key=k1"))

    assert [(), (DEAD, f"{DEAD}.to.other"), (DEAD,), (), (DEAD,), (DEAD,)] == [
        each.redriven_by async for each in letters.read()
    ]
    assert [1, 2, 4, 5] == await redriven_offsets(letters)
    assert [0, 3] == [each.offset async for each in letters.read(redriven=False)]
    found = await letters.get(0, 4)
    assert found is not None
    assert (DEAD,) == found.redriven_by


async def test_committed_offset_is_the_first_that_is_not_redriven(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)

    await letters.redrive(filter=parse_filter("group=billing"))
    assert ((1, 3), (4, 6)) == (await marks(admin)).ranges
    await letters.redrive(filter=parse_filter("key=k0"))
    assert ((0, 3), (4, 6)) == (await marks(admin)).ranges
    await letters.redrive()
    assert ((0, 6),) == (await marks(admin)).ranges


async def test_rejected_and_skipped_dead_letters_are_not_marked(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    broker.create_topic("small", partitions=1, config={"max.message.bytes": "2000"})
    large = new_letter(1)._replace(value=b"x" * 5000)
    often = new_letter(2, redrives=3)
    produce_letters(broker, [new_letter(0), large, often, new_letter(3)])

    for expected in (2, 0):
        summary = await letters.redrive(to="small")
        assert expected == summary.redriven
        assert {
            "it was redriven too often": 1,
            "its target rejected it": 1,
        } == summary.skipped

    assert [0, 3] == await redriven_offsets(letters)


async def test_dead_letter_that_was_rejected_is_redriven_once_its_target_takes_it(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    produce_letters(broker, [new_letter(0), new_letter(1, topic="later")])
    assert 1 == (await letters.redrive()).redriven
    broker.create_topic("later", partitions=2)

    assert 1 == (await letters.redrive()).redriven
    assert [b"v1"] == [each.value for each in await records_of(admin, "later")]
    assert [0, 1] == await redriven_offsets(letters)


# Selected by offset.


async def test_only_selected_dead_letters_are_redriven(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)

    summary = await letters.redrive(only=[(0, 4), LetterOffset(0, 1)])

    assert (2, 0) == (summary.redriven, summary.filtered)
    assert {1: 1, 4: 1} == await times_redriven(admin)


async def test_selected_dead_letter_that_was_redriven_is_an_error(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)
    await letters.redrive(only=[(0, 4)])

    summary = await letters.redrive(only=[(0, 3), (0, 4)])

    assert (1, {"it was redriven before": 1}) == (summary.redriven, summary.skipped)
    assert (
        f"{DEAD}-0@4 is not redriven: it was redriven before (--again, again=True: "
        "redrive it again)",
    ) == summary.errors
    assert {3: 1, 4: 1} == await times_redriven(admin)


async def test_selected_dead_letter_is_redriven_again_with_again(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)
    await letters.redrive()

    assert 1 == (await letters.redrive(only=[(0, 4)], again=True)).redriven
    assert 0 == (await letters.redrive()).redriven
    assert {0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 1} == await times_redriven(admin)
    assert ((0, 6),) == (await marks(admin)).ranges


async def test_interrupted_redrive_again_continues_without_again(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)
    await letters.redrive()
    with broker.faults.on("Produce", times=1).lose(), anyio.move_on_after(1.0):
        await letters.redrive(only=[(0, 4)], again=True)

    assert [0, 1, 2, 3, 5] == await redriven_offsets(letters)
    for _ in range(2):
        await letters.redrive(only=[(0, 4)])

    assert {0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 1} == await times_redriven(admin)


async def test_interrupted_redrive_again_that_is_repeated_writes_once(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    """The second run completes the first one's batch, and does not write another."""
    write_six(broker)
    await letters.redrive()
    with broker.faults.on("Produce", times=1).lose(), anyio.move_on_after(1.0):
        await letters.redrive(only=[(0, 4)], again=True)

    summary = await letters.redrive(only=[(0, 4)], again=True)

    assert ((), 0) == (summary.errors, summary.redriven)
    assert 1 == summary.already_written
    assert 2 == (await times_redriven(admin))[4]


async def test_offset_that_is_not_in_the_log_is_rejected(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    write_six(broker)

    for only in ([(0, 6)], [(1, 0)]):
        with pytest.raises(ConfigurationError, match="has no dead letter at offset"):
            await letters.redrive(only=only)
    with pytest.raises(ConfigurationError, match="again needs only"):
        await letters.redrive(again=True)
    with pytest.raises(ConfigurationError, match="offset -1"):
        await letters.redrive(only=[(0, -1)])


async def test_dry_run_leaves_out_what_is_marked(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)
    await letters.redrive(filter=parse_filter("group=billing"))
    before = await marks(admin)
    planned: list[int] = []

    def on_decision(letter: DeadLetterRecord, _: Decision) -> None:
        planned.append(letter.offset)

    assert 2 == (await letters.plan_redrive(on_decision)).redriven
    again = await letters.plan_redrive(on_decision, only=[(0, 1)], again=True)
    assert 1 == again.redriven
    assert [0, 3, 1] == planned
    assert before == await marks(admin)


# Interrupted with one filter, continued with another.


async def test_batch_of_another_filter_is_completed_first(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)
    with (
        broker.faults.on("Produce", times=1).refuse(
            "TOPIC_AUTHORIZATION_FAILED", each=True
        ),
        pytest.raises(BrokerError),
    ):
        await letters.redrive(filter=parse_filter("group=billing"))
    assert [] == await redriven_offsets(letters)

    summary = await letters.redrive(filter=parse_filter("group=shipping"))

    assert 6 == summary.redriven + summary.already_written
    assert dict.fromkeys(range(6), 1) == await times_redriven(admin)
    assert [0, 1, 2, 3, 4, 5] == await redriven_offsets(letters)


async def test_batch_is_completed_with_another_limit_of_redrives(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    """The note has the dead letters of the batch, so options do not change it."""
    produce_letters(broker, [new_letter(n, redrives=n) for n in range(4)])
    with broker.faults.on("Produce", times=1).lose(), anyio.move_on_after(1.0):
        await letters.redrive(max_redrives=2)

    summary = await letters.redrive(max_redrives=4)

    assert (2, 2) == (summary.redriven, summary.already_written)
    assert dict.fromkeys(range(4), 1) == await times_redriven(admin)


# Marks that do not fit.


async def store_marks(admin: ShareGroupAdmin, wanted: OffsetRanges) -> None:
    """Change the stored marks of partition 0."""
    listed = (await admin.list_consumer_group_offsets(GROUP))[GROUP].value
    committed = listed[HERE].value
    assert committed is not None
    old = decode_metadata(committed.offset, committed.metadata)
    new = Progress(wanted, old.plan, old.run)
    metadata = encode_metadata(new)
    changed = type(committed)(offset=new.offset, metadata=metadata)
    (await admin.alter_consumer_group_offsets(GROUP, {HERE: changed})).check()


async def test_marks_that_do_not_fit_end_the_run_before_its_batch_is_written(
    broker: EmbeddedBroker,
    admin: ShareGroupAdmin,
    letters: DeadLetters,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sharecons.dead_letters.progress.MAX_MARKS", 15)
    write_some(broker, *range(40))
    await letters.redrive(only=[(0, 2), (0, 5)])
    before = await marks(admin)

    with pytest.raises(MarksFullError, match=r"from offset 0 on that are not redriven"):
        await letters.redrive(only=[(0, n) for n in (7, 8, 13, 17, 23, 25, 26, 31)])

    assert before == await marks(admin)
    assert {2: 1, 5: 1} == await times_redriven(admin)
    assert 38 == (await letters.redrive()).redriven


async def test_half_of_10000_dead_letters_at_random_can_be_marked(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 0, 1)
    await letters.redrive(only=[(0, 0)])
    chosen = OffsetRanges.of(
        (each, each + 1) for each in range(10_000) if each * 2654435761 >> 16 & 1
    )
    await store_marks(admin, chosen)

    assert chosen == await marks(admin)


async def test_foreign_group_does_not_hide_the_marks_of_others(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_six(broker)
    await letters.redrive(only=[(0, 2)])
    await admin.alter_consumer_group_offsets("sharecons-redrive.foreign", {HERE: 5})

    assert [2] == await redriven_offsets(letters)
