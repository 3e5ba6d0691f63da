"""Averages, maxima and rates over windows; all expected values are computed by hand."""

import math

import pytest

from sharecons.metrics.recorder import SampledValues

START = 1000.0


@pytest.fixture
def values() -> SampledValues:
    return SampledValues()


def test_no_values_have_no_average_and_a_rate_of_zero(values: SampledValues) -> None:
    assert math.isnan(values.average(START))
    assert math.isnan(values.maximum(START))
    assert 0.0 == values.rate(START) == values.frequency(START)


def test_maximum_may_be_negative(values: SampledValues) -> None:
    values.add(-3.0, START)
    values.add(-2.0, START)

    assert -2.0 == values.maximum(START)
    assert -2.5 == values.average(START)


def test_rate_assumes_an_empty_window_before_the_first(values: SampledValues) -> None:
    values.add(100.0, START)

    assert 100 / 30 == values.rate(START)
    assert 100 / 40 == values.rate(START + 10)
    assert 1 / 40 == values.frequency(START + 10)


def test_rate_covers_one_to_two_windows(values: SampledValues) -> None:
    values.add(100.0, START)
    values.add(20.0, START + 30)

    assert 120 / 30 == values.rate(START + 30)
    assert 120 / 59 == values.rate(START + 59)
    assert 2 / 59 == values.frequency(START + 59)


def test_values_are_dropped_after_two_windows_without_another(
    values: SampledValues,
) -> None:
    values.add(100.0, START)
    values.add(2.0, START + 30)

    assert (51.0, 100.0) == (values.average(START + 59), values.maximum(START + 59))
    assert (2.0, 2.0) == (values.average(START + 60), values.maximum(START + 60))
    assert 2 / 30 == values.rate(START + 60)
    assert math.isnan(values.average(START + 90))
    assert 0.0 == values.rate(START + 90)


def test_third_window_keeps_values_until_two_windows_have_passed(
    values: SampledValues,
) -> None:
    values.add(1.0, START)
    values.add(1.0, START + 29)
    values.add(10.0, START + 31)
    values.add(100.0, START + 62)

    assert (112.0 / 4, 100.0) == (
        values.average(START + 62),
        values.maximum(START + 62),
    )
    assert 112 / 62 == values.rate(START + 62)
    assert 110 / 58 == values.rate(START + 89)


def test_fourth_window_replaces_the_oldest(values: SampledValues) -> None:
    for number in range(4):
        values.add(10.0**number, START + 30 * number)

    assert 1110 / 3 == values.average(START + 90 - 1)
    assert 1100 / 2 == values.average(START + 90)


def test_value_after_a_long_pause_starts_a_window(values: SampledValues) -> None:
    values.add(100.0, START)
    values.add(6.0, START + 600)

    assert 6.0 == values.average(START + 600)
    assert 6 / 32 == values.rate(START + 602)


def test_reading_changes_nothing(values: SampledValues) -> None:
    for second in (0, 10, 200):
        values.rate(START + second)
        values.average(START + second)
    values.add(6.0, START + 205)
    values.rate(START + 270)  # dropped

    assert 6.0 == values.average(START + 206)
    assert 6 / 31 == values.rate(START + 206)
