"""Decisions, batches and the stored progress of a redrive."""

import random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from sharecons import TopicPartition
from sharecons.dead_letters import (
    DeadLetterRecord,
    LetterFilter,
    SourceStatus,
    parse_filter,
)
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.dead_letters.plan import (
    MAX_BYTES,
    BatchPlan,
    RedrivePlan,
    Skip,
    SkipReason,
    Write,
)
from sharecons.dead_letters.progress import (
    MAX_MARKS,
    MAX_METADATA,
    MAX_NOTE,
    NOTE_FIELDS,
    InFlight,
    MarksFullError,
    Progress,
    TargetState,
    check_size,
    decode_metadata,
    encode_metadata,
    note_room,
    target_sizes,
)
from sharecons.protocol.produce.messages import ProducerIdentity
from sharecons.protocol.produce.partitioner import partition_of_key
from sharecons.testing import make_record
from tests.dead_letters.letters import origin_of

NAMES = st.text("abcdefghijklmnopqrstuvwxyz.", min_size=1, max_size=249)
DEAD = TopicPartition("orders.dead", 0)
OFFSETS = st.integers(0, (1 << 63) - 1)
RANGES = st.lists(st.tuples(OFFSETS, OFFSETS)).map(OffsetRanges.of)
TARGETS = st.dictionaries(
    st.builds(TopicPartition, NAMES, st.integers(0, (1 << 31) - 1)),
    st.builds(TargetState, OFFSETS, st.integers(0, (1 << 31) - 1)),
    max_size=60,
)


def new_letter(
    offset: int = 0,
    *,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    status: SourceStatus = SourceStatus.COPIED,
    redrives: int = 0,
    **fields: Any,
) -> DeadLetterRecord:
    return DeadLetterRecord(
        record=make_record(value, key=key, topic="orders.dead", offset=offset),
        origin=origin_of(offset, **fields),
        key=key,
        value=value,
        headers=(),
        redrives=redrives,
        status=status,
    )


def new_plan(to: str | None = None) -> RedrivePlan:
    return RedrivePlan(
        topic="orders.dead", name="n", to=to, filter=LetterFilter(), max_redrives=3
    )


def target_of(letter: DeadLetterRecord, to: str | None = None, **counts: int) -> Any:
    decision = new_plan(to).decide(letter, counts)
    assert isinstance(decision, Write)
    return decision.target


def test_record_returns_to_its_partition() -> None:
    assert ("orders", 1) == target_of(new_letter(3), orders=2)


def test_record_of_a_missing_partition_goes_by_its_key() -> None:
    letter = new_letter(3, partition=9)

    assert ("orders", partition_of_key(b"k", 5)) == target_of(letter, orders=5)


def test_record_for_another_topic_goes_by_its_key() -> None:
    assert ("a", partition_of_key(b"k", 5)) == target_of(new_letter(3), "a", a=5)


def test_records_without_key_for_another_topic_are_spread() -> None:
    targets = [target_of(new_letter(n, key=None), "a", a=3) for n in range(6)]

    assert [("a", n % 3) for n in range(6)] == targets


@pytest.mark.parametrize(
    ("letter", "reason"),
    [
        (new_letter(redrives=3), SkipReason.MAX_REDRIVES),
        (new_letter(redrives=99), SkipReason.MAX_REDRIVES),
        (new_letter(status=SourceStatus.GONE), SkipReason.SOURCE_GONE),
        (new_letter(topic="other"), SkipReason.NO_TARGET),
    ],
)
def test_letter_without_a_possible_target_is_skipped(
    letter: DeadLetterRecord, reason: SkipReason
) -> None:
    decision = new_plan().decide(letter, {"orders": 1})

    assert isinstance(decision, Skip)
    assert reason is decision.reason


def test_digest_depends_on_topic_and_target_only() -> None:
    plan = new_plan()
    same = RedrivePlan(
        topic="orders.dead",
        name="x",
        to=None,
        filter=parse_filter("group=billing"),
        max_redrives=9,
    )

    assert plan.digest == same.digest
    assert plan.digest != new_plan("a").digest


# Batches.


def write_to(letter: DeadLetterRecord, topic: str, partition: int = 0) -> Write:
    return Write(letter, TopicPartition(topic, partition))


def taken(batch: BatchPlan, write: Write, since: int | None = None) -> bool:
    """Add a dead letter if it fits; return whether it does."""
    offset = write.letter.offset
    start = offset if since is None else since
    fits = batch.can_take(write, start)
    if fits:
        batch.take(write.letter, start, write)
    return fits


def test_batch_has_a_limit_of_records() -> None:
    batch = BatchPlan(0, max_records=3)
    count = 0
    while taken(batch, write_to(new_letter(count), "a")):
        count += 1

    assert (3, 3) == (count, batch.until)


def test_batch_has_a_limit_of_bytes_but_takes_one_record() -> None:
    large = write_to(new_letter(0, value=b"x" * (MAX_BYTES + 1)), "a")
    batch = BatchPlan(0)

    assert taken(batch, large)
    assert not taken(batch, write_to(new_letter(1), "a"))


def test_batch_has_only_the_targets_that_fit_in_the_metadata() -> None:
    batch = BatchPlan(0)
    count = 0
    while taken(batch, write_to(new_letter(count), "t" * 249, count)):
        count += 1

    assert 20 < count < 100
    assert target_sizes(batch.targets) <= MAX_NOTE
    assert taken(batch, write_to(new_letter(count), "t" * 249, 0))


def test_batch_has_only_the_ranges_that_fit_in_the_metadata() -> None:
    batch = BatchPlan(0, room=1_000)
    number = 0
    while taken(batch, write_to(new_letter(number * 1_000), "a")):
        number += 1

    assert 50 < number < 500
    assert len(batch.marks().encode()) <= 1_000


def test_offsets_without_a_record_join_the_range_of_the_next_letter() -> None:
    batch = BatchPlan(0)
    for since, offset in ((0, 2), (3, 3), (4, 9), (12, 12)):
        assert taken(batch, write_to(new_letter(offset), "a"), since)

    assert ((0, 10), (12, 13)) == batch.marks().ranges
    assert ((0, 3), (4, 10), (12, 13)) == batch.marks([3]).ranges


def test_batch_counts_the_letters_that_it_skips() -> None:
    batch = BatchPlan(5)
    batch.take(new_letter(5), 5, Skip(SkipReason.FILTERED))
    batch.take(new_letter(9), 9, Skip(SkipReason.NO_TARGET, "topic 'x'"))

    assert (10, []) == (batch.until, batch.writes)
    assert {SkipReason.FILTERED: 1, SkipReason.NO_TARGET: 1} == batch.skipped
    assert [
        "orders.dead-0@9 is not redriven: its target does not exist (topic 'x')"
    ] == batch.errors


# Progress.


def every_other(count: int, start: int = 0) -> OffsetRanges:
    """Return ranges whose text grows with their number: distances have no pattern."""
    steps = random.Random(start)
    ranges, last = [], start
    for _ in range(count):
        last += steps.randrange(2, 100)
        ranges.append((last, last + 1))
    return OffsetRanges.of(ranges)


@given(RANGES, RANGES, TARGETS)
def test_progress_is_read_as_written(
    marks: OffsetRanges,
    letters: OffsetRanges,
    targets: dict[TopicPartition, TargetState],
) -> None:
    in_flight = InFlight(letters, ProducerIdentity(1 << 62, 32767), targets)
    progress = Progress(marks, "a" * 12, "b" * 12, in_flight)
    metadata = encode_metadata(progress)

    assert progress == decode_metadata(progress.offset, metadata)
    without = Progress(marks, "a" * 12, "b" * 12)
    sizes = target_sizes(targets) + len(letters.encode()) + NOTE_FIELDS
    assert len(metadata.encode()) <= len(encode_metadata(without)) + sizes


def test_progress_without_batch_is_read_as_written() -> None:
    progress = Progress(OffsetRanges.of([(0, 7)]), "p", "r")

    assert progress == decode_metadata(7, encode_metadata(progress))
    assert 7 == progress.offset


def test_batch_that_fills_its_room_fits_in_the_metadata() -> None:
    marks = every_other(1_500)
    assert MAX_MARKS * 0.8 < len(marks.encode()) < MAX_MARKS
    progress = Progress(marks, "p" * 12, "r" * 12)
    batch = BatchPlan(0, room=note_room(progress))
    number = marks.end
    while taken(batch, write_to(new_letter(number), "t" * 40, number % 30)):
        number += 10
    assert batch.writes
    state = TargetState((1 << 62) - 1, (1 << 31) - 1)
    targets = dict.fromkeys(batch.targets, state)
    in_flight = InFlight(batch.marks(), ProducerIdentity(1 << 62, 32767), targets)

    full = Progress(marks, "p" * 12, "r" * 12, in_flight)

    assert len(encode_metadata(full)) <= MAX_METADATA


def test_marks_that_do_not_fit_are_rejected_before_a_batch_is_written() -> None:
    marks = every_other(1_000)
    check_size(DEAD, Progress(marks, "p", "r"), marks)

    with pytest.raises(MarksFullError, match=r"orders\.dead-0 do not fit .* of 2400"):
        check_size(DEAD, Progress(marks, "p", "r"), marks.union(every_other(3_000, 1)))


def test_marks_that_are_too_large_are_allowed_to_shrink() -> None:
    marks = every_other(2_200)
    assert len(marks.encode()) > MAX_MARKS
    smaller = marks.union(OffsetRanges.of([(0, 50_000)]))

    check_size(DEAD, Progress(marks, "p", "r"), smaller)


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "x",
        "1",
        "[]",
        "{}",
        '{"v":1,"plan":"p","run":"r"}',
        '{"v":2,"run":"r"}',
        '{"v":2,"plan":"p","run":"r","marks":"x y"}',
        '{"v":2,"plan":"p","run":"r","marks":"12345"}',
        '{"v":2,"plan":"p","run":"r","batch":{}}',
        '{"v":2,"plan":"p","run":"r","batch":{"letters":"","producer":[1]}}',
        '{"v":2,"plan":"p","run":"r",'
        '"batch":{"letters":"","producer":[1,0],"targets":[]}}',
    ],
)
def test_foreign_metadata_is_rejected(metadata: str) -> None:
    with pytest.raises(ValueError, match="."):
        decode_metadata(0, metadata)
