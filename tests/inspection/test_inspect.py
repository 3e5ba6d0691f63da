"""Inspections, compared with what the consumer acknowledged."""

import time

import anyio
import pytest

from sharecons._record import TopicPartition
from sharecons.errors import BrokerError
from sharecons.group_state.offset_states import UNSETTLED
from sharecons.inspection import (
    OffsetStatus,
    Reason,
    Severity,
    StateSource,
    inspect_group,
)
from tests.scenarios.queue import Queue, take

pytestmark = pytest.mark.anyio


def statuses(inside):
    return {
        offset: each.status
        for each in inside.ranges
        for offset in range(each.first_offset, each.last_offset + 1)
    }


def having(inside, status):
    found = statuses(inside)
    return {offset for offset, one in found.items() if one is status}


async def settled(consumer):
    """Wait until the broker has the acknowledgements."""
    for result in await consumer.commit(timeout=20):
        assert result.error is None


def only(inspection):
    (inside,) = inspection.partitions.found.values()
    (findings,) = inspection.findings.values()
    return inside, findings


@pytest.mark.parametrize("source", [StateSource.COORDINATOR, StateSource.RECORDS])
async def test_inspection_matches_what_the_consumer_acknowledged(
    kafka, admin, source, request
):
    if source is StateSource.RECORDS and "embedded" in request.node.callspec.id:
        pytest.skip("the embedded broker keeps states, but no records of them")
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 100)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        for record in await take(aiter(consumer), 100):
            if record.offset % 10 == 3:
                record.accept()
            elif record.offset % 10 == 6:
                record.reject()
            elif record.offset >= 90:
                record.release()
        await settled(consumer)
        # Others are held meanwhile, and released records come again.
        inspection = await inspect_group(admin, queue.group, source=source)

    inside, _ = only(inspection)
    assert inspection.source is source
    assert set(range(3, 100, 10)) == having(inside, OffsetStatus.ACKNOWLEDGED)
    assert set(range(6, 100, 10)) == having(inside, OffsetStatus.ARCHIVED)
    left = {offset for offset in range(100) if offset % 10 not in (3, 6)}
    found = statuses(inside)
    assert left == {offset for offset, one in found.items() if one in UNSETTLED}
    counts = {e.first_offset: e.delivery_count for e in inside.ranges}
    assert 1 == counts[90]
    assert (0, 0, 100) == (
        inside.start_offset,
        inside.log_start_offset,
        inside.end_offset,
    )
    assert 1 == len(inside.members)


async def test_released_offsets_have_their_delivery_counts(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 4)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        for record in await take(records, 4):
            if record.offset in (0, 3):
                record.accept()
            else:
                record.release()
        await settled(consumer)
        again = await take(records, 2)
    inside, _ = only(await inspect_group(admin, queue.group))

    assert [2, 2] == [record.delivery_count for record in again]
    assert {1, 2} == having(inside, OffsetStatus.OPEN)
    assert {2: 2} == inside.delivery_counts


async def test_partition_stalled_behind_one_held_record_has_verdict_window_full(
    kafka, admin
):
    queue = Queue(kafka.admin, **{"share.partition.max.record.locks": "100"})
    kafka.admin.produce(queue.topic, [b"x"] * 300, batch_num_messages=10)
    produced = time.time()
    async with queue.consumer(acknowledgement="explicit") as consumer:
        with anyio.move_on_after(20):
            async for record in consumer:
                if record.offset == 0:
                    held = record
                    continue
                record.accept()
                if record.offset >= 99:
                    break
        await settled(consumer)
        inspection = await inspect_group(admin, queue.group)
        held.accept()

    inside, (verdict, *_) = only(inspection)
    assert (Reason.WINDOW_FULL, Severity.STALLED) == (verdict.reason, verdict.severity)
    assert "full behind one record" in verdict.text
    assert "wait for offset 0, " in verdict.text
    assert 0 == inside.oldest.offset
    assert abs(inside.oldest.timestamp / 1000 - produced) < 30


@pytest.mark.slow("a hundred inspections")
async def test_hundred_inspections_do_not_disturb_the_group(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 500)
    taken = []
    inspections = 0
    inspected = anyio.Semaphore(0)

    async def inspect_repeatedly():
        nonlocal inspections
        for _ in range(100):
            await inspect_group(admin, queue.group)
            inspections += 1
            inspected.release()

    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        first = await anext(records)
        first.accept()
        taken.append(first)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(inspect_repeatedly)
            while len(taken) < 500:
                record = await anext(records)
                if len(taken) % 5 == 0:  # so that inspections and records alternate
                    await inspected.acquire()
                record.accept()
                taken.append(record)
        await settled(consumer)

    assert 100 == inspections
    assert list(range(500)) == sorted(record.offset for record in taken)
    assert {1} == {record.delivery_count for record in taken}
    inside, _ = only(await inspect_group(admin, queue.group))
    assert 0 == inside.count(*UNSETTLED)


async def test_group_whose_members_left_has_the_verdict_no_members(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 5)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        for record in await take(aiter(consumer), 2):
            record.accept()
        await settled(consumer)
    _, (verdict, *_) = only(await inspect_group(admin, queue.group))

    assert Reason.NO_MEMBERS is verdict.reason


async def test_oldest_record_above_settled_records_is_found(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 20)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = await take(aiter(consumer), 20)
        for record in records[:7]:
            record.accept()
        await settled(consumer)
        inside, _ = only(await inspect_group(admin, queue.group))

    assert (7, records[7].timestamp) == (
        inside.oldest.offset,
        inside.oldest.timestamp,
    )


async def test_repeated_inspection_returns_the_time_of_the_last_change(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 20)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = await take(aiter(consumer), 20)
        first = await inspect_group(admin, queue.group)
        second = await inspect_group(admin, queue.group, before=first)
        records[3].accept()
        await settled(consumer)
        third = await inspect_group(admin, queue.group, before=second)

    since = [only(each)[0].unchanged_since for each in (first, second, third)]
    assert since[0] == since[1] < first.at
    assert second.at < since[2] < third.at


async def test_unknown_group_is_an_error(kafka, admin):
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        await inspect_group(admin, "unknown-group")


async def test_a_topic_that_the_group_does_not_read_has_its_own_error(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 5)
    async with queue.consumer() as consumer:
        await take(aiter(consumer), 1)
        inspection = await inspect_group(
            admin, queue.group, topics=[queue.topic, "nix"]
        )

    (error,) = inspection.partitions.errors.values()
    assert "does not read nix" in str(error)
    assert [TopicPartition(queue.topic, 0)] == list(inspection.partitions.found)
