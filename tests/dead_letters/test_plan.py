"""Decisions, batches and the stored progress of a redrive."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from sharecons import TopicPartition
from sharecons._record import DETACHED, Record, TimestampType
from sharecons.dead_letters import DeadLetterRecord, LetterFilter, SourceStatus
from sharecons.dead_letters.plan import (
    MAX_BYTES,
    BatchPlan,
    RedrivePlan,
    Skip,
    SkipReason,
    Write,
)
from sharecons.dead_letters.progress import (
    MAX_METADATA,
    InFlight,
    Progress,
    TargetState,
    decode_metadata,
    encode_metadata,
    metadata_size,
)
from sharecons.protocol.produce.messages import ProducerIdentity
from sharecons.protocol.produce.partitioner import partition_of_key
from tests.dead_letters.letters import origin_of

NAMES = st.text("abcdefghijklmnopqrstuvwxyz.", min_size=1, max_size=249)
OFFSETS = st.integers(0, (1 << 63) - 1)
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
    record = Record(
        *("orders.dead", 0, offset, 0, TimestampType.CREATE_TIME),
        *(key, value, (), 1, DETACHED),
    )
    return DeadLetterRecord(
        record=record,
        origin=origin_of(offset, **fields),
        key=key,
        value=value,
        headers=(),
        redrives=redrives,
        status=status,
    )


def new_plan(to: str | None = None) -> RedrivePlan:
    return RedrivePlan(
        topic="orders.dead", name="n", to=to, wanted=LetterFilter(), max_redrives=3
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


def test_digest_depends_on_topic_target_and_filters_only() -> None:
    plan = new_plan()
    same = RedrivePlan(
        topic="orders.dead", name="x", to=None, wanted=LetterFilter(), max_redrives=9
    )

    assert plan.digest == same.digest
    assert plan.digest != new_plan("a").digest


# Batches.


def write_to(letter: DeadLetterRecord, topic: str, partition: int = 0) -> Write:
    return Write(letter, TopicPartition(topic, partition))


def test_batch_has_a_limit_of_records() -> None:
    batch = BatchPlan(0, max_records=3)
    taken = 0
    while batch.can_take(decision := write_to(new_letter(taken), "a")):
        batch.take(decision.letter, decision)
        taken += 1

    assert (3, 3) == (taken, batch.until)


def test_batch_has_a_limit_of_bytes_but_takes_one_record() -> None:
    large = write_to(new_letter(0, value=b"x" * (MAX_BYTES + 1)), "a")
    batch = BatchPlan(0)

    assert batch.can_take(large)
    batch.take(large.letter, large)
    assert not batch.can_take(write_to(new_letter(1), "a"))


def test_batch_has_only_the_targets_that_fit_in_the_metadata() -> None:
    batch = BatchPlan(0)
    taken = 0
    while batch.can_take(write := write_to(new_letter(taken), "t" * 249, taken)):
        batch.take(write.letter, write)
        taken += 1

    assert 20 < taken < 100
    assert metadata_size(batch.targets) <= MAX_METADATA
    assert batch.can_take(write_to(new_letter(taken), "t" * 249, 0))


def test_batch_counts_the_letters_that_it_skips() -> None:
    batch = BatchPlan(5)
    batch.take(new_letter(5), Skip(SkipReason.FILTERED))
    batch.take(new_letter(9), Skip(SkipReason.NO_TARGET, "topic 'x'"))

    assert (10, []) == (batch.until, batch.writes)
    assert {SkipReason.FILTERED: 1, SkipReason.NO_TARGET: 1} == batch.skipped
    assert [
        "orders.dead-0@9 is not redriven: its target does not exist (topic 'x')"
    ] == batch.errors


# Progress.


@given(OFFSETS, OFFSETS, TARGETS)
def test_progress_is_read_as_written(
    offset: int, until: int, targets: dict[TopicPartition, TargetState]
) -> None:
    in_flight = InFlight(until, ProducerIdentity(1 << 62, 32767), targets)
    progress = Progress(offset, "a" * 12, "b" * 12, in_flight)
    metadata = encode_metadata(progress)

    assert progress == decode_metadata(offset, metadata)
    assert len(metadata.encode()) <= metadata_size(targets)


def test_progress_without_batch_is_read_as_written() -> None:
    progress = Progress(7, "p", "r")

    assert progress == decode_metadata(7, encode_metadata(progress))


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "x",
        "1",
        "[]",
        "{}",
        '{"v":2,"plan":"p","run":"r"}',
        '{"v":1,"run":"r"}',
        '{"v":1,"plan":"p","run":"r","batch":{}}',
        '{"v":1,"plan":"p","run":"r","batch":{"until":1,"producer":[1],"targets":{}}}',
        '{"v":1,"plan":"p","run":"r","batch":{"until":1,"producer":[1,0],"targets":[]}}',
    ],
)
def test_foreign_metadata_is_rejected(metadata: str) -> None:
    with pytest.raises(ValueError, match="."):
        decode_metadata(0, metadata)
