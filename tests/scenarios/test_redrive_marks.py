"""Marks of redriven dead letters, in the offsets of a group, on both brokers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sharecons import ShareGroupAdmin
from sharecons.dead_letters import DeadLetters, NotRedrivenError, parse_filter
from tests.dead_letters.letters import (
    marks_of,
    new_letter,
    records_of,
    write_letters,
)
from tests.kafka_plugin import Admin

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def letters_of(admin: Admin, topic: str) -> AsyncIterator[DeadLetters]:
    async with DeadLetters(topic, bootstrap_servers=admin.bootstrap_servers) as letters:
        yield letters


async def times_redriven(admin: Admin, topic: str) -> dict[int, int]:
    async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
        marks = await marks_of(client, topic)
    return {offset: count for (_, _, offset), count in marks.items()}


async def test_runs_with_other_filters_redrive_each_dead_letter_once(
    admin: Admin,
) -> None:
    target, dead = admin.create_topic(partitions=2), admin.create_topic()
    groups = ["billing" if number % 3 else "shipping" for number in range(90)]
    written = [
        new_letter(number, topic=target, group=group)
        for number, group in enumerate(groups)
    ]
    await write_letters(admin.bootstrap_servers, written, topic=dead)

    async with letters_of(admin, dead) as letters:
        counts = [
            (await letters.redrive(filter=wanted)).redriven
            for wanted in (parse_filter("group=billing"), parse_filter("key=k3"))
        ]
        open_ones = [each.offset async for each in letters.read(redriven=False)]
        counts.append((await letters.redrive()).redriven)
        again = await letters.redrive(only=[(0, 7)], again=True)

    assert [60, 1, 29] == counts
    assert [n for n in range(0, 90, 3) if n != 3] == open_ones
    assert 1 == again.redriven
    expected = dict.fromkeys(range(90), 1) | {7: 2}
    assert expected == await times_redriven(admin, target)


async def test_record_that_was_dead_lettered_twice_is_redriven_once(
    admin: Admin,
) -> None:
    target, dead = admin.create_topic(partitions=2), admin.create_topic(partitions=2)
    numbers = (0, 1, 1, 0, 2, 3, 2, 4)
    written = [new_letter(number, topic=target) for number in numbers]
    await write_letters(admin.bootstrap_servers, written, topic=dead, partitions=2)

    async with letters_of(admin, dead) as letters:
        found = [each async for each in letters.read()]
        first = await letters.redrive(only=[(1, 0)])
        counts = (await letters.redrive()).redriven
        open_ones = [each async for each in letters.read(redriven=False)]

    assert [None, None, None, (0, 2), (0, 1), (0, 0), None, None] == [
        each.duplicate_of for each in found
    ]
    assert (1, 4, []) == (first.redriven, counts, open_ones)
    async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
        values = [record.value for record in await records_of(client, target)]
    assert [b"v0", b"v1", b"v2", b"v3", b"v4"] == sorted(values)


async def test_redriven_dead_letters_are_deleted_and_the_rest_is_redriven_later(
    admin: Admin,
) -> None:
    target, dead = admin.create_topic(partitions=2), admin.create_topic(partitions=2)
    written = [new_letter(number, topic=target) for number in range(12)]
    await write_letters(admin.bootstrap_servers, written, topic=dead, partitions=2)

    async with letters_of(admin, dead) as letters:
        await letters.redrive(only=[(0, 0), (0, 1), (1, 0), (1, 5)])
        with pytest.raises(NotRedrivenError, match="1 of 2 dead letters"):
            await letters.delete({0: 2, 1: 2})
        planned = await letters.plan_delete({0: 2, 1: 1})
        deleted = await letters.delete({0: 2, 1: 1})
        left = [each.letter_offset async for each in letters.read()]
        summary = await letters.redrive()

    assert [(2, 0), (1, 0)] == [
        (each.letters, each.not_redriven) for each in planned.values()
    ]
    assert planned == deleted.found
    assert [*((0, n) for n in range(2, 6)), *((1, n) for n in range(1, 6))] == left
    assert 8 == summary.redriven
    async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
        marks = await marks_of(client, target)
    assert (12, {1}) == (len(marks), set(marks.values()))


async def test_ranges_of_transactions_have_no_gaps(admin: Admin) -> None:
    """Offsets of transaction markers have no record; they are not left open."""
    target, dead = admin.create_topic(), admin.create_topic()
    producer = admin.producer(transactional_id=f"{dead}-producer")
    producer.init_transactions(30)
    for number in range(3):
        letter = new_letter(number, topic=target, partition=0)
        producer.begin_transaction()
        producer.produce(
            dead, letter.value, letter.key, 0, headers=list(letter.headers)
        )
        producer.commit_transaction(30)

    async with letters_of(admin, dead) as letters:
        await letters.redrive()
    group = f"sharecons-redrive.{dead}"
    async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
        ((_, committed),) = (await client.list_consumer_group_offsets(group))[
            group
        ].value.found.items()

    assert committed is not None
    assert 5 == committed.offset
    assert "marks" not in committed.metadata
