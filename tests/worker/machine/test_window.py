"""The window of a partition, and failed records that wait in it."""

import pytest

from sharecons.record import TopicPartition
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.window import DEFAULT_WINDOW, WindowTracker
from tests.worker.machine.simulated_worker import FakeRecord

P0 = TopicPartition("orders", 0)
P1 = TopicPartition("orders", 1)


class Windows:
    """A tracker, and the records in it by partition and offset."""

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.tracker = WindowTracker(window)
        self.held: dict[tuple[TopicPartition, int], WorkItem] = {}

    def add(
        self, partition: TopicPartition, offset: int, now: float
    ) -> WorkItem | None:
        record = FakeRecord(offset, topic=partition.topic)
        record.partition = partition.partition
        item = self.held[partition, offset] = WorkItem(record, 1)
        return self.tracker.add(item, now)

    def remove(self, partition: TopicPartition, offset: int) -> None:
        self.tracker.remove(self.held.pop((partition, offset)))

    def can_wait(
        self, partition: TopicPartition, offset: int, delay: float, now: float
    ) -> bool:
        return self.tracker.can_wait(self.held[partition, offset], delay, now)

    def held_up(self, now: float) -> list[tuple[TopicPartition, int, float]]:
        return [
            (item.topic_partition, item.record.offset, seconds)
            for item, seconds in self.tracker.held_up(now)
        ]


def at_rate(per_second: int, seconds: int = 10) -> tuple[Windows, float]:
    """Return windows of a partition with this rate, and the time."""
    windows = Windows()
    for number in range(per_second * seconds):
        now = number / per_second
        windows.add(P0, number, now)
        windows.remove(P0, number)
    return windows, float(seconds)


@pytest.mark.parametrize(
    ("rate", "longest"), [(20, 80.0), (100, 16.0), (1000, 1.6), (2000, 0.8)]
)
def test_record_can_wait_while_rate_times_delay_fits(rate: int, longest: float) -> None:
    windows, now = at_rate(rate)
    offset = rate * 10
    windows.add(P0, offset, now)

    assert windows.can_wait(P0, offset, 0.95 * longest, now)
    assert not windows.can_wait(P0, offset, 1.05 * longest, now)


def test_offsets_passed_already_count() -> None:
    windows, now = at_rate(100)
    old = 1000
    windows.add(P0, old, now)
    for offset in range(1001, 2501):
        windows.add(P0, offset, now + (offset - 1000) / 100)
    later = now + 15.0

    assert not windows.can_wait(P0, old, 2.0, later)
    assert windows.can_wait(P0, 2500, 10.0, later)


def test_partition_that_stands_still_keeps_its_rate_for_a_while() -> None:
    windows, now = at_rate(1000)
    offset = 10_000
    windows.add(P0, offset, now)

    assert not windows.can_wait(P0, offset, 3.0, now + 4.0)
    assert windows.can_wait(P0, offset, 3.0, now + 30.0)


def test_first_records_of_a_partition_do_not_count_as_a_high_rate() -> None:
    windows = Windows()
    for offset in range(5000, 5100):
        windows.add(P0, offset, 0.0)

    assert windows.can_wait(P0, 5000, 10.0, 0.001)


def test_each_partition_has_its_own_rate() -> None:
    windows, now = at_rate(2000)
    windows.add(P0, 20_000, now)
    windows.add(P1, 7, now)

    assert not windows.can_wait(P0, 20_000, 30.0, now)
    assert windows.can_wait(P1, 7, 30.0, now)


def test_partition_is_held_up_by_its_oldest_record() -> None:
    windows = Windows()
    windows.add(P0, 100, 1.0)
    windows.add(P0, 101, 2.0)
    for offset in range(102, 1801):
        windows.add(P0, offset, 3.0)
        windows.remove(P0, offset)

    assert [(P0, 100, 9.0)] == windows.held_up(10.0)
    windows.remove(P0, 100)
    assert [(P0, 101, 8.0)] == windows.held_up(10.0)
    windows.remove(P0, 101)
    assert [] == windows.held_up(10.0)


def test_redelivered_record_is_held_since_its_new_delivery() -> None:
    windows = Windows(window=10)
    windows.add(P0, 5, 1.0)
    windows.remove(P0, 5)
    windows.add(P0, 20, 2.0)
    windows.add(P0, 5, 3.0)

    assert [(P0, 5, 1.0)] == windows.held_up(4.0)
    windows.remove(P0, 5)
    windows.remove(P0, 20)
    assert [] == windows.held_up(4.0)


def test_partitions_without_records_are_forgotten_when_they_are_revoked() -> None:
    windows = Windows(window=10)
    windows.add(P0, 0, 0.0)
    windows.add(P0, 20, 0.0)
    windows.add(P1, 0, 0.0)
    windows.remove(P1, 0)

    windows.tracker.keep_only(frozenset())

    assert [(P0, 0, 1.0)] == windows.held_up(1.0)
    windows.add(P1, 50, 0.0)
    assert [(P0, 0, 1.0)] == windows.held_up(1.0)


def test_earlier_delivery_that_is_still_held_is_found() -> None:
    windows = Windows()
    assert windows.add(P0, 5, 1.0) is None
    earlier = windows.held[P0, 5]
    assert windows.add(P1, 5, 1.0) is None

    assert earlier is windows.add(P0, 5, 3.0)

    windows.tracker.remove(earlier)
    later = windows.held[P0, 5]
    assert later is windows.add(P0, 5, 4.0), "it is still held"
