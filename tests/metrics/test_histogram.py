"""Histograms: the buckets of values, and snapshots while values are added."""

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.histogram import Histogram, HistogramRecorder

BOUNDS = (0.0, 0.5, 1.0, 2.0)


def test_value_equal_to_a_bound_is_in_its_bucket() -> None:
    recorder = HistogramRecorder((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        recorder.observe(value)

    histogram = recorder.snapshot()

    assert ((2, 2, 1), 5, 7.5) == (histogram.counts, histogram.count, histogram.sum)


def test_recorder_without_values_has_counts_of_zero() -> None:
    assert Histogram(BOUNDS, (0,) * 5, 0.0) == HistogramRecorder(BOUNDS).snapshot()


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.1, 0.5, 0.7, 1.0, 1.5, 2.0, 9.0])))
def test_every_value_is_counted_in_its_bucket(values: list[float]) -> None:
    recorder = HistogramRecorder(BOUNDS)
    expected = [0] * (len(BOUNDS) + 1)
    for value in values:
        recorder.observe(value)
        expected[bisect_left(BOUNDS, value)] += 1

        assert tuple(expected) == recorder.snapshot().counts

    assert sum(values) == pytest.approx(recorder.snapshot().sum)


class Probe(float):
    """A value that takes a snapshot in each comparison, as another thread could."""

    recorder: HistogramRecorder
    snapshots: list[Histogram]

    def __gt__(self, other: float) -> bool:
        self.snapshots.append(self.recorder.snapshot())
        return float(self) > other


def test_no_count_decreases_while_a_value_is_added() -> None:
    recorder = HistogramRecorder(BOUNDS)
    snapshots: list[Histogram] = []
    for number in (0.1, 0.1, 0.1, 0.7, 0.7, 0.1, 5.0):
        value = Probe(number)
        value.recorder, value.snapshots = recorder, snapshots
        recorder.observe(value)
        snapshots.append(recorder.snapshot())

    counts = [each.counts for each in snapshots]
    for before, after in zip(counts, counts[1:], strict=False):
        assert all(a <= b for a, b in zip(before, after, strict=True)), counts
    assert (0, 4, 2, 0, 1) == counts[-1]
