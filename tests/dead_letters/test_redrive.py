"""Redrives on the embedded broker."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.copies.dead_letter_headers import read_redrives
from sharecons.copies.dead_letter_queue import DeadLetterQueue
from sharecons.dead_letters import (
    DeadLetterRecord,
    DeadLetters,
    RedriveSummary,
    parse_filter,
)
from sharecons.dead_letters.plan import Decision, Write
from sharecons.dead_letters.progress_store import RedriveConflictError
from sharecons.dead_letters.redrive import CLAIM_DELAY
from sharecons.errors import ConfigurationError
from sharecons.protocol.produce.partitioner import partition_of_key
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.testing.virtual_time import Backend
from sharecons.worker.outcomes import DeadLetter
from sharecons.worker.share_worker import ShareWorker
from tests.dead_letters.letters import (
    DEAD,
    marks_of,
    new_letter,
    produce_letters,
    records_of,
)
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=2)
        broker.create_topic("archive", partitions=3)
        broker.create_topic(DEAD, partitions=2)
        yield broker


def write_some(broker: EmbeddedBroker, count: int) -> None:
    produce_letters(broker, map(new_letter, range(count)), partitions=2)


async def test_redriven_records_return_unchanged_to_their_partitions(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 4)

    summary = await letters.redrive()

    assert RedriveSummary(name=DEAD, redriven=4) == summary
    records = await records_of(admin, "orders")
    assert [
        (0, b"k0", b"v0"),
        (0, b"k2", b"v2"),
        (1, b"k1", b"v1"),
        (1, b"k3", b"v3"),
    ] == [(r.partition, r.key, r.value) for r in records]
    assert (
        ("trace", b"1"),
        ("sharecons.redrives", b"1"),
        ("sharecons.redrive.name", DEAD.encode()),
        ("sharecons.redrive.of", f"{DEAD}:0:1".encode()),
        ("sharecons.first-origin", b"orders:0:2"),
        ("sharecons.first-failed", b"1700000100002"),
    ) == records[1].headers


async def test_second_run_redrives_only_what_is_new(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 6)
    await letters.redrive()
    assert 0 == (await letters.redrive()).redriven
    produce_letters(broker, map(new_letter, (6, 7)), partitions=2)

    assert 2 == (await letters.redrive()).redriven
    assert {1} == set((await marks_of(admin, "orders")).values())
    assert 8 == len(await records_of(admin, "orders"))


async def test_other_name_redrives_again(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 6)
    await letters.redrive()

    assert 6 == (await letters.redrive(name="again")).redriven
    assert {"again": 6, DEAD: 6} == Counter(
        name for name, *_ in (await marks_of(admin, "orders")).elements()
    )


async def test_other_target_of_one_name_is_rejected(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    write_some(broker, 2)
    await letters.redrive(name="n")

    with pytest.raises(ConfigurationError, match="started with another target"):
        await letters.redrive(name="n", to="archive")


async def test_records_for_another_topic_are_partitioned_by_key(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 30)

    summary = await letters.redrive(to="archive")

    assert (f"{DEAD}.to.archive", 30) == (summary.name, summary.redriven)
    records = await records_of(admin, "archive")
    assert {0, 1, 2} == {record.partition for record in records}
    assert [partition_of_key(record.key, 3) for record in records] == [
        record.partition for record in records
    ]


async def test_limit_leaves_the_rest_for_the_next_run(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 20)

    first = await letters.redrive(limit=7)
    second = await letters.redrive(limit=7)
    third = await letters.redrive()

    assert [(7, 13), (7, 6), (6, 0)] == [
        (each.redriven, each.remaining) for each in (first, second, third)
    ]
    assert {1} == set((await marks_of(admin, "orders")).values())
    assert 20 == len(await records_of(admin, "orders"))


async def test_filtered_and_skipped_are_counted(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    produce_letters(
        broker,
        [
            new_letter(0),
            new_letter(1, group="other"),
            new_letter(2, redrives=3),
            new_letter(3, redrives=2),
            new_letter(4, topic="gone"),
            new_letter(5, topic="not a topic"),
            new_letter(6)._replace(headers=()),
        ],
    )

    summary = await letters.redrive(filter=parse_filter("group=billing"))

    assert (2, 1) == (summary.redriven, summary.filtered)
    assert {
        "it was redriven too often": 1,
        "its target does not exist": 2,
        "it has no origin headers": 1,
    } == summary.skipped
    assert (
        f"{DEAD}-0@4 is not redriven: its target does not exist (topic 'gone')",
        f"{DEAD}-0@5 is not redriven: its target does not exist (topic 'not a topic')",
    ) == summary.errors
    assert [b"v0", b"v3"] == [r.value for r in await records_of(admin, "orders")]


async def test_number_of_redrives_grows_until_the_limit(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    """A record that fails again is redriven three times, and then no more."""
    write_some(broker, 1)
    for times in (1, 2, 3):
        assert 1 == (await letters.redrive()).redriven
        record = max(await records_of(admin, "orders"), key=lambda each: each.key)
        assert times == read_redrives(record.headers)
        again = new_letter(times, redrives=read_redrives(record.headers))
        produce_letters(broker, [again])

    summary = await letters.redrive()

    assert (0, {"it was redriven too often": 1}) == (summary.redriven, summary.skipped)


async def test_rejected_record_does_not_stop_the_others(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    broker.create_topic("small", partitions=1, config={"max.message.bytes": "2000"})
    large = new_letter(1)._replace(value=b"x" * 5000)
    produce_letters(broker, [new_letter(0), large, new_letter(2), new_letter(3)])

    summary = await letters.redrive(to="small")

    assert (3, {"its target rejected it": 1}) == (summary.redriven, summary.skipped)
    assert "orders.dead-0@1" in summary.errors[0]
    assert "MESSAGE_TOO_LARGE" in summary.errors[0]
    assert [b"v0", b"v2", b"v3"] == [r.value for r in await records_of(admin, "small")]


async def test_dry_run_writes_and_commits_nothing(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 5)
    decisions: list[tuple[DeadLetterRecord, Decision]] = []

    summary = await letters.plan_redrive(
        lambda *args: decisions.append(args), filter=parse_filter("key~k"), limit=4
    )

    assert 4 == summary.redriven
    assert [0, 2, 4, 1] == [
        letter.origin.offset for letter, _ in decisions if letter.origin
    ]
    assert all(isinstance(decision, Write) for _, decision in decisions)
    assert [] == await records_of(admin, "orders")
    groups = await admin.list_groups(types=())
    assert {} == groups.groups


async def test_rate_limits_the_redrive(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    write_some(broker, 30)
    start = anyio.current_time()

    await letters.redrive(rate=20)

    assert anyio.current_time() - start > 1.0


async def test_dead_letters_removed_before_they_are_read_are_an_error(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 20)
    summaries: list[RedriveSummary] = []

    async def redrive() -> None:
        summaries.append(await letters.redrive())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(redrive)
        await anyio.sleep(CLAIM_DELAY / 2)
        await admin.delete_records({TopicPartition(DEAD, n): 4 + 6 * n for n in (0, 1)})

    (summary,) = summaries
    assert (6, 0) == (summary.redriven, summary.remaining)
    assert [
        f"{DEAD}-0: offsets 0 to 3 were removed",
        f"{DEAD}-1: offsets 0 to 9 were removed",
    ] == [error.partition(" before")[0] for error in summary.errors]


async def test_redriven_dead_letters_that_are_removed_are_no_error(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 20)
    await letters.redrive(limit=3)
    summaries: list[RedriveSummary] = []

    async def redrive() -> None:
        summaries.append(await letters.redrive())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(redrive)
        await anyio.sleep(CLAIM_DELAY / 2)
        await admin.delete_records({TopicPartition(DEAD, 0): 3})

    assert (17, ()) == (summaries[0].redriven, tuple(summaries[0].errors))


async def test_later_redrive_of_a_name_ends_the_earlier_one(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 60)
    summaries: list[RedriveSummary] = []
    started = anyio.Event()

    async def first() -> None:
        def on_progress(summary: RedriveSummary) -> None:
            if summary.redriven:
                started.set()

        with pytest.raises(RedriveConflictError, match="one redrive of a name at a"):
            await letters.redrive(rate=10, on_progress=on_progress)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await started.wait()
        summaries.append(await letters.redrive())

    assert 0 == summaries[0].remaining
    marks = await marks_of(admin, "orders")
    assert (60, {1}) == (len(marks), set(marks.values()))


async def test_later_redrive_takes_over_even_if_reading_the_marked_takes_long(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 60)
    started = anyio.Event()

    async def first() -> None:
        def on_progress(summary: RedriveSummary) -> None:
            if summary.redriven:
                started.set()

        with pytest.raises(RedriveConflictError):
            await letters.redrive(rate=10, on_progress=on_progress)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await started.wait()
        broker.faults.on("Fetch", times=1).stall(2.5)
        summary = await letters.redrive()

    assert 0 == summary.remaining
    marks = await marks_of(admin, "orders")
    assert (60, {1}) == (len(marks), set(marks.values()))


async def test_concurrent_redrives_write_each_record_once(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 60)
    ended: list[str] = []

    async def redrive() -> None:
        try:
            await letters.redrive()
        except RedriveConflictError:
            ended.append("conflict")
        else:
            ended.append("done")

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(redrive)

    assert ["conflict", "conflict", "done"] == sorted(ended)
    marks = await marks_of(admin, "orders")
    assert (60, {1}) == (len(marks), set(marks.values()))


async def test_foreign_group_is_not_overwritten(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 2)
    await admin.alter_consumer_group_offsets(
        "sharecons-redrive.n", {TopicPartition(DEAD, 0): 1}
    )

    with pytest.raises(ConfigurationError, match="no redrive has stored"):
        await letters.redrive(name="n")


async def test_new_topic_of_the_same_name_needs_another_name(
    broker: EmbeddedBroker, admin: ShareGroupAdmin, letters: DeadLetters
) -> None:
    write_some(broker, 6)
    await letters.redrive()
    group = f"sharecons-redrive.{DEAD}"
    stored = (await admin.list_consumer_group_offsets(group))[group].value.found
    beyond = {key: replace(each, offset=99) for key, each in stored.items() if each}
    (await admin.alter_consumer_group_offsets(group, beyond)).check()

    with pytest.raises(ConfigurationError, match="the topic is a new one"):
        await letters.redrive()


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": 0},
        {"rate": 0},
        {"max_redrives": 0},
        {"to": DEAD},
        {"to": "no topic"},
        {"name": "x\ud800"},
    ],
    ids=str,
)
async def test_invalid_argument_is_rejected(
    letters: DeadLetters, arguments: dict[str, object]
) -> None:
    redrive: Callable[..., object] = letters.redrive
    with pytest.raises(ConfigurationError):
        await redrive(**arguments)  # type: ignore[misc]


async def test_record_that_always_fails_is_redriven_up_to_the_limit(
    broker: EmbeddedBroker, letters: DeadLetters
) -> None:
    async def fail(_: object) -> None:
        raise DeadLetter("it always fails")

    worker = ShareWorker(
        "orders",
        fail,
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        max_wait=0.1,
        network=broker.network,
        dead_letter=DeadLetterQueue(DEAD),
        handle_signals=False,
    )
    broker.produce("orders", [b"v"], keys=[b"k"], headers=(("trace", b"1"),))
    summaries: list[RedriveSummary] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        with anyio.fail_after(60):
            for number in range(4):
                await until(lambda n=number: len(broker.records(DEAD)) > n)
                summaries.append(await letters.redrive())
        worker.stop()

    assert [1, 1, 1, 0] == [each.redriven for each in summaries]
    assert {"it was redriven too often": 1} == summaries[-1].skipped
    found = [each async for each in letters.read()]
    assert [0, 1, 2, 3] == [each.redrives for each in found]
    assert {(b"k", b"v", (("trace", b"1"),))} == {
        (each.key, each.value, each.headers) for each in found
    }
    assert ["it always fails"] * 4 == [e.origin.reason for e in found if e.origin]
