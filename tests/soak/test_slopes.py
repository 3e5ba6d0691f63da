"""Theil-Sen slopes."""

import random

import pytest

from tests.soak.slopes import theil_sen


def test_line_without_noise_has_its_slope_and_no_interval() -> None:
    line = theil_sen([(hour, 100.0 + 2.5 * hour) for hour in range(10)])

    assert 2.5 == pytest.approx(line.slope)
    assert 2.5 == pytest.approx(line.low) == pytest.approx(line.high)
    assert 0.0 == pytest.approx(line.noise)
    assert (111.25, 9) == (pytest.approx(line.middle), line.length)
    assert 22.5 == pytest.approx(line.growth)


def test_every_fourth_point_far_off_does_not_change_the_slope() -> None:
    points = [(n, 7.0 if n % 4 else 1000.0) for n in range(100)]

    line = theil_sen(points)

    assert 0.0 == line.slope
    assert 0.0 == line.noise


@pytest.mark.parametrize("slope", [0.0, 0.5, -3.0])
def test_interval_contains_the_slope_of_noisy_points(slope: float) -> None:
    chance = random.Random(7)
    inside = 0
    for _ in range(40):
        points = [(n / 60, slope * n / 60 + chance.gauss(0.0, 2.0)) for n in range(60)]
        line = theil_sen(points)
        inside += line.low <= slope <= line.high
        assert 1.2 < line.noise < 3.0

    assert 34 <= inside


def test_long_series_has_the_slope_of_medians() -> None:
    line = theil_sen([(n, 3.0 * n) for n in range(2003)])

    assert 3.0 == pytest.approx(line.slope)
    assert 1980 < line.length <= 2002


@pytest.mark.parametrize("points", [[], [(1.0, 5.0)], [(1.0, 5.0), (1.0, 9.0)]])
def test_points_without_two_times_have_no_slope(points) -> None:
    line = theil_sen(points)

    assert (0.0, 0.0, 0.0) == (line.slope, line.low, line.high)
