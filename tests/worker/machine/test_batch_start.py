"""When a batch starts."""

import math

from sharecons.worker.machine.batch_start import BatchStart


def test_batch_that_is_full_starts() -> None:
    start = BatchStart(3, 1.0)

    assert not start.is_due(0, 0.0)
    assert not start.is_due(2, 0.0)
    assert start.is_due(3, 0.5)


def test_batch_whose_first_record_has_waited_starts() -> None:
    start = BatchStart(3, 1.0)
    assert math.inf == start.next_due()
    assert not start.is_due(1, 5.0)
    assert not start.is_due(2, 5.9)
    assert 6.0 == start.next_due()
    assert start.is_due(2, 6.0)

    start.on_started()

    assert math.inf == start.next_due()
    assert not start.is_due(1, 6.5), "the rest begins to wait"


def test_batch_of_one_record_starts_immediately() -> None:
    assert BatchStart(1, 0.0).is_due(1, 0.0)
