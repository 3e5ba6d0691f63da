"""The exponents that tests/limits computes."""

import pytest

from tests.limits.growth import NOISE, Noise, exponent, is_fault

SIZES = (100.0, 300.0, 1000.0)
EXACT = Noise(0.0, 0.0)


def grown(power: float, constant: float = 0.0, factor: float = 0.01) -> list[float]:
    return [constant + factor * size**power for size in SIZES]


@pytest.mark.parametrize("power", [0.5, 1.0, 1.3, 2.0, 3.0])
@pytest.mark.parametrize("constant", [0.0, 50.0])
def test_exponent_of_a_power_beside_a_constant_is_the_power(
    power: float, constant: float
) -> None:
    assert power == pytest.approx(exponent(SIZES, grown(power, constant), EXACT), 0.01)


def test_exponent_of_two_sizes_is_the_slope() -> None:
    assert 2.0 == pytest.approx(exponent((10, 100), (1.0, 100.0), EXACT))


@pytest.mark.parametrize("values", [(5.0, 5.1, 5.2), (5.0, 4.0, 2.0), (0.0, 0.0, 0.0)])
def test_exponent_of_a_figure_that_does_not_grow_is_zero(
    values: tuple[float, ...],
) -> None:
    assert 0.0 == exponent(SIZES, values, Noise(0.5, 0.0))


def test_exponent_of_growth_after_the_middle_size_is_the_slope_there() -> None:
    values = (5.0, 5.1, 50.0)
    assert 1.9 == pytest.approx(exponent(SIZES, values, Noise(0.5, 0.0)), 0.01)


def test_exponent_of_one_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        exponent((1.0,), (1.0,), EXACT)


@pytest.mark.parametrize(
    ("power", "expected"), [(0.5, False), (1.0, False), (1.1, False), (2.0, True)]
)
def test_fault_is_growth_that_is_faster_than_the_size(
    power: float, expected: bool
) -> None:
    assert expected is is_fault(SIZES, grown(power, 10.0), Noise(0.0, 0.02))


def test_growth_that_noise_can_explain_is_no_fault() -> None:
    values = (100.0, 108.0, 150.0)

    assert exponent(SIZES, values, EXACT) > 1.15
    assert not is_fault(SIZES, values, NOISE["CPU ms"])
