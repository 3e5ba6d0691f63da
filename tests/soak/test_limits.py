"""The limits of slopes."""

import random

import pytest

from tests.soak.limits import grown_types, judge

HOURS = [minute / 60 for minute in range(60, 480)]


def noisy(start: float, slope: float, noise: float) -> list[tuple[float, float]]:
    chance = random.Random(3)
    return [(hour, start + slope * hour + chance.gauss(0.0, noise)) for hour in HOURS]


@pytest.mark.parametrize(("slope", "is_good"), [(0.9, True), (1.1, False)])
def test_memory_can_grow_by_one_mib_an_hour(slope: float, is_good: bool) -> None:
    assert judge("rss", noisy(80.0, slope, 0.5)).is_good is is_good


@pytest.mark.parametrize(("slope", "is_good"), [(-1.9, True), (-2.1, False)])
def test_throughput_can_fall_by_one_percent_an_hour(slope, is_good: bool) -> None:
    # Its median is the rate in the middle of the run.
    points = noisy(200.0 - 4.5 * slope, slope, 0.5)

    assert judge("records/s", points).is_good is is_good


@pytest.mark.parametrize(
    ("name", "start", "slope", "noise", "is_good"),
    [
        ("p99", 20.0, 0.3, 4.0, True),  # 2 ms in the run, less than the noise
        ("p99", 20.0, 0.9, 4.0, False),
        ("p99", 20.0, -5.0, 4.0, True),
        ("tasks", 12.0, 0.0, 0.0, True),
        ("tasks", 12.0, 0.1, 0.0, True),  # less than one
        ("tasks", 12.0, 0.2, 0.0, False),
        ("objects", 90_000.0, 20.0, 10.0, True),
        ("objects", 90_000.0, 60.0, 10.0, False),  # one a minute
    ],
)
def test_flat_is_less_growth_than_noise(name, start, slope, noise, is_good) -> None:
    trend = judge(name, noisy(start, slope, noise))

    assert ("flat", is_good) == (trend.limit, trend.is_good)


def test_growth_within_its_confidence_interval_is_flat() -> None:
    trend = judge("descriptors", [(0.0, 20.0), (1.0, 28.0), (2.0, 20.0), (3.0, 26.0)])

    assert trend.is_good


def test_grown_types_are_the_ten_with_most_new_objects() -> None:
    first = {f"t{n}": 100 for n in range(20)}
    last = {f"t{n}": 100 + n for n in range(20)} | {"new": 50, "t3": 1}

    grown = grown_types(first, last)

    assert ("new", 50) == grown[0]
    assert [("t19", 19), ("t11", 11)] == [grown[1], grown[9]]
    assert 10 == len(grown)
