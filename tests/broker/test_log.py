"""The log of a partition: append, read, truncate."""

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.log.partition_log import (
    AppendError,
    LogPosition,
    PartitionLog,
)
from tests.broker.raw_batches import NOW, BatchHead, batch, batches_in, transactional

END = 1 << 40


def log_of(*sizes):
    """Return a log with batches of these numbers of records."""
    log = PartitionLog()
    for size in sizes:
        log.append(batch(*("v" for _ in range(size))), NOW)
    return log


def places(log, first=0, end=END, room=END):
    return [(b.base_offset, b.last_offset) for b in log.batches(first, end, room)]


def ends(log):
    return log.start_offset, log.last_stable_offset, log.end_offset


def begin(log, producer_id, epoch=0, sequence=0):
    content = transactional(producer_id, epoch, sequence)
    return log.append(content, NOW, transaction_version=1).base_offset


class FakeEvent:
    """Stands in for the event of a waiting task."""

    notified = False

    def set(self):
        self.notified = True


def waiting(log):
    event = FakeEvent()
    log.changed.add(event)
    return event


def test_several_batches_are_appended_in_order():
    log = PartitionLog()

    appended = log.append(batch("a", "b") + batch("c"), NOW)

    assert (2, 2) == (appended.base_offset, appended.last_offset)
    assert [(0, 1), (2, 2)] == places(log)


def test_rejected_batch_changes_nothing():
    log = log_of(2)
    event = waiting(log)

    with pytest.raises(AppendError):
        log.append(batch(record_count=9), NOW)
    with pytest.raises(AppendError):
        log.append(b"", NOW)

    assert (0, 2, 2) == ends(log)
    assert not event.notified


def test_batches_are_whole_and_first_is_always_returned():
    log = log_of(1, 1, 1)
    size = len(log.batches(0, END, END)[0].data)

    assert [(0, 0)] == places(log, room=0)
    assert [(0, 0)] == places(log, room=2 * size - 1)
    assert [(0, 0), (1, 1)] == places(log, room=2 * size)


def test_every_change_notifies_waiters():
    log = PartitionLog()
    for change in (
        lambda: log.append(batch("a", "b"), NOW),
        lambda: begin(log, 1),
        lambda: log.end_transaction(1, 0, True, NOW),
        lambda: log.truncate_before(1),
    ):
        event = waiting(log)
        change()

        assert event.notified


def test_appended_batches_have_the_leader_epoch():
    log = PartitionLog()
    log.append(batch(), NOW, leader_epoch=4)

    assert 4 == BatchHead(log.batches(0, 1, END)[0].data).leader_epoch
    assert 4 == log.earliest_epoch(9)
    assert 9 == PartitionLog().earliest_epoch(9)


def test_truncation_is_limited_to_existing_records():
    log = log_of(3)

    log.truncate_before(2)
    log.truncate_before(1)
    assert 2 == log.start_offset

    log.truncate_before(9)
    assert (3, 3, 3) == ends(log)
    assert [] == places(log)
    assert 3 == log.append(batch(), NOW).base_offset


def test_open_transaction_limits_last_stable_offset():
    log = log_of(2)
    begin(log, 1)
    begin(log, 2)
    log.append(batch(), NOW)

    assert (0, 2, 5) == ends(log)
    log.end_transaction(1, 0, True, NOW)
    assert (0, 3, 6) == ends(log)
    log.end_transaction(2, 0, False, NOW)
    assert (0, 7, 7) == ends(log)


def test_truncation_advances_last_stable_offset():
    log = log_of(1)
    begin(log, 1)
    log.append(batch(), NOW)
    log.truncate_before(2)

    assert (2, 2, 3) == ends(log)


def test_aborted_transactions_are_listed_for_overlapping_reads():
    log = PartitionLog()
    begin(log, 1)  # 0, and its marker at 3
    begin(log, 2)  # 1, committed at 2
    log.end_transaction(2, 0, True, NOW)
    log.end_transaction(1, 0, False, NOW)
    begin(log, 1, sequence=1)  # 4, and its marker at 5
    log.end_transaction(1, 0, False, NOW)

    assert [(1, 0), (1, 4)] == log.aborted(0, 6)
    assert [(1, 0)] == log.aborted(0, 4)
    assert [(1, 0), (1, 4)] == log.aborted(3, 5)
    assert [(1, 4)] == log.aborted(4, 6)
    assert [] == log.aborted(6, 9)


def test_empty_transaction_writes_only_a_marker():
    log = log_of(1)
    log.end_transaction(5, 2, False, NOW)

    assert [] == log.aborted(0, 9)
    assert (0, 2, 2) == ends(log)
    assert [False, True] == [b.is_control for b in log.batches(0, END, END)]


def test_truncation_removes_aborted_transactions():
    log = PartitionLog()
    begin(log, 1)
    log.end_transaction(1, 0, False, NOW)
    log.append(batch(), NOW)

    log.truncate_before(1)
    assert [(1, 0)] == log.aborted(0, 9)
    log.truncate_before(2)
    assert [] == log.aborted(0, 9)


def timed_log():
    log = PartitionLog()
    log.append(batch("a", "b", "c", times=[NOW, NOW + 50, NOW + 20]), NOW)
    log.append(batch("d", "e", times=[NOW + 10, NOW + 50]), NOW)
    log.append(batch("f", timestamp=NOW + 60), NOW)
    return log


def test_deleted_records_are_not_found_by_timestamp():
    log = timed_log()
    log.truncate_before(2)

    assert LogPosition(2, NOW + 20, 0) == log.find_timestamp(NOW)


def test_max_timestamp_finds_the_first_record():
    log = PartitionLog()
    assert log.find_max_timestamp() is None

    log.append(batch("a", "b", "c", times=[NOW, NOW + 50, NOW + 50]), NOW)
    log.append(batch("d", timestamp=NOW + 50), NOW)
    assert LogPosition(1, NOW + 50, 0) == log.find_max_timestamp()


def test_corrupt_damages_one_batch():
    log = log_of(2, 2)
    log.corrupt(3)

    heads, _ = batches_in(b"".join(b.data for b in log.batches(0, END, END)))
    assert [True, False] == [head.is_sound for head in heads]
    with pytest.raises(LookupError):
        log.corrupt(4)


def test_transactional_batch_needs_a_known_transaction():
    log = PartitionLog()

    with pytest.raises(AppendError) as caught:
        log.append(transactional(1, 0, 0), NOW)
    assert ErrorCode.invalid_txn_state is caught.value.code

    begin(log, 1)
    assert log.has_open_transaction(1, 0)
    assert not log.has_open_transaction(1, 1)
    log.append(transactional(1, 0, 1), NOW)
    log.end_transaction(1, 0, True, NOW)
    assert not log.has_open_transaction(1, 0)
    with pytest.raises(AppendError):
        log.append(transactional(1, 0, 2), NOW)


def test_reading_ends_with_the_batch_before_the_last_offset():
    log = log_of(3, 1, 2)

    assert [(0, 2), (3, 3)] == places(log, end=4)
    assert [(0, 2), (3, 3), (4, 5)] == places(log, end=5)
