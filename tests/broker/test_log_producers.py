"""Idempotent producers: each batch once, in order, no older epochs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.log.partition_log import AppendError, PartitionLog
from tests.broker.raw_batches import NOW, batch, transactional

LAST = 2**31 - 1

OUT_OF_ORDER = ErrorCode.out_of_order_sequence_number
OLD_EPOCH = ErrorCode.invalid_producer_epoch


def send(log, sequence, size=1, epoch=0, producer_id=7):
    """Append a batch; return the offset, or the error."""
    content = batch(*"v" * size, producer=(producer_id, epoch, sequence))
    try:
        return log.append(content, NOW).base_offset
    except AppendError as error:
        return error.code


def played(*sends):
    log = PartitionLog()
    return [send(log, *each) for each in sends]


def test_last_five_batches_are_recognised():
    log = PartitionLog()
    for sequence in range(6):
        send(log, sequence)

    assert [1, 5] == [send(log, 1), send(log, 5)]
    assert OUT_OF_ORDER is send(log, 0)


def test_sequence_after_the_maximum_is_0():
    assert [0, 2] == played((LAST - 1, 2), (0,))


def test_duplicate_batch_returns_its_timestamp():
    log = PartitionLog()
    content = batch(producer=(7, 0, 0), timestamp=NOW + 3)

    assert log.append(content, NOW).log_append_time is None
    assert NOW + 3 == log.append(content, NOW).log_append_time


def test_unknown_producer_starts_with_any_sequence():
    assert [0, 1] == played((7,), (8,))


def test_producers_are_independent():
    assert [0, 1, 2] == played((0, 1, 0, 1), (0, 1, 0, 2), (1, 1, 0, 1))


def test_truncation_keeps_producer_state():
    log = PartitionLog()
    send(log, 0)
    log.truncate_before(1)

    assert OUT_OF_ORDER is send(log, 5)
    assert 1 == send(log, 1)


def test_marker_of_next_epoch_fences_late_batches():
    log = PartitionLog()
    log.append(transactional(7, 0, 0), NOW, transaction_version=2)
    log.end_transaction(7, 1, True, NOW)

    with pytest.raises(AppendError) as caught:
        log.append(transactional(7, 0, 1), NOW, transaction_version=2)

    assert OLD_EPOCH is caught.value.code


def test_version_2_transaction_starts_with_sequence_0():
    log = PartitionLog()

    with pytest.raises(AppendError) as caught:
        log.append(transactional(7, 0, 3), NOW, transaction_version=2)
    assert OUT_OF_ORDER is caught.value.code

    log.append(transactional(7, 0, 3), NOW, transaction_version=1)
    assert 1 == log.end_offset


def test_plain_batch_in_open_transaction_is_rejected():
    log = PartitionLog()
    log.append(transactional(7, 0, 0), NOW, transaction_version=1)

    assert ErrorCode.invalid_txn_state is send(log, 1)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 3), st.integers(0, 1)), max_size=60
    )
)
def test_records_are_written_once_and_in_order(sends):
    """Compare with a naive model that keeps all batches and searches them."""
    log, written, end = PartitionLog(), [], 0
    for sequence, size, epoch in sends:
        of_epoch = [each for each in written if each[2] == epoch]
        newest = max((each[2] for each in written), default=None)
        following = of_epoch[-1][0] + of_epoch[-1][1] if of_epoch else 0
        again = [each for each in of_epoch[-5:] if each[:2] == (sequence, size)]
        if newest is not None and epoch < newest:
            expected = OLD_EPOCH
        elif again:
            expected = again[0][3]
        elif newest is not None and sequence != following:
            expected = OUT_OF_ORDER
        else:
            expected = end
            written.append((sequence, size, epoch, end))
            end += size

        assert expected == send(log, sequence, size, epoch)
        assert end == log.end_offset
