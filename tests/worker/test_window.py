"""The window of a partition, and failed records that wait in it."""

import pytest

from sharecons.record import TopicPartition
from sharecons.worker.window import HeldUp, WindowTracker

P0 = TopicPartition("orders", 0)
P1 = TopicPartition("orders", 1)


def at_rate(per_second: int, seconds: int = 10) -> tuple[WindowTracker, float]:
    """Return a tracker of a partition with this rate, and the time."""
    tracker = WindowTracker()
    for number in range(per_second * seconds):
        now = number / per_second
        tracker.on_delivered(P0, number, now)
        tracker.on_done(P0, number)
    return tracker, float(seconds)


@pytest.mark.parametrize(
    ("rate", "longest"), [(20, 80.0), (100, 16.0), (1000, 1.6), (2000, 0.8)]
)
def test_record_can_wait_while_rate_times_delay_fits(rate: int, longest: float) -> None:
    tracker, now = at_rate(rate)
    offset = rate * 10
    tracker.on_delivered(P0, offset, now)

    assert tracker.can_wait(P0, offset, 0.95 * longest, now)
    assert not tracker.can_wait(P0, offset, 1.05 * longest, now)


def test_offsets_passed_already_count() -> None:
    tracker, now = at_rate(100)
    old = 1000
    tracker.on_delivered(P0, old, now)
    for offset in range(1001, 2501):
        tracker.on_delivered(P0, offset, now + (offset - 1000) / 100)
    later = now + 15.0

    assert not tracker.can_wait(P0, old, 2.0, later)
    assert tracker.can_wait(P0, 2500, 10.0, later)


def test_partition_that_stands_still_keeps_its_rate_for_a_while() -> None:
    tracker, now = at_rate(1000)
    offset = 10_000
    tracker.on_delivered(P0, offset, now)

    assert not tracker.can_wait(P0, offset, 3.0, now + 4.0)
    assert tracker.can_wait(P0, offset, 3.0, now + 30.0)


def test_first_records_of_a_partition_do_not_count_as_a_high_rate() -> None:
    tracker = WindowTracker()
    for offset in range(5000, 5100):
        tracker.on_delivered(P0, offset, 0.0)

    assert tracker.can_wait(P0, 5000, 10.0, 0.001)


def test_each_partition_has_its_own_rate() -> None:
    tracker, now = at_rate(2000)
    tracker.on_delivered(P0, 20_000, now)
    tracker.on_delivered(P1, 7, now)

    assert not tracker.can_wait(P0, 20_000, 30.0, now)
    assert tracker.can_wait(P1, 7, 30.0, now)


def test_partition_is_held_up_by_its_oldest_record() -> None:
    tracker = WindowTracker()
    tracker.on_delivered(P0, 100, 1.0)
    tracker.on_delivered(P0, 101, 2.0)
    for offset in range(102, 1801):
        tracker.on_delivered(P0, offset, 3.0)
        tracker.on_done(P0, offset)

    assert [HeldUp(P0, 100, 9.0)] == tracker.held_up(10.0)
    tracker.on_done(P0, 100)
    assert [HeldUp(P0, 101, 8.0)] == tracker.held_up(10.0)
    tracker.on_done(P0, 101)
    assert [] == tracker.held_up(10.0)


def test_redelivered_record_is_held_since_its_new_delivery() -> None:
    tracker = WindowTracker(window=10)
    tracker.on_delivered(P0, 5, 1.0)
    tracker.on_done(P0, 5)
    tracker.on_delivered(P0, 20, 2.0)
    tracker.on_delivered(P0, 5, 3.0)

    assert [HeldUp(P0, 5, 1.0)] == tracker.held_up(4.0)
    tracker.on_done(P0, 5)
    tracker.on_done(P0, 20)
    assert [] == tracker.held_up(4.0)


def test_partitions_without_records_are_forgotten_when_they_are_revoked() -> None:
    tracker = WindowTracker(window=10)
    tracker.on_delivered(P0, 0, 0.0)
    tracker.on_delivered(P0, 20, 0.0)
    tracker.on_delivered(P1, 0, 0.0)
    tracker.on_done(P1, 0)

    tracker.keep_only(frozenset())

    assert [P0] == [each.topic_partition for each in tracker.held_up(1.0)]
    tracker.on_delivered(P1, 50, 0.0)
    assert [P0] == [each.topic_partition for each in tracker.held_up(1.0)]
