"""The exponent with which a figure grows.

A figure is taken as `a + b * size ** k`: a command has costs of its own, which hide the
growth of small sizes. Three sizes decide `k`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

__all__ = ["FAULT", "NOISE", "Noise", "exponent", "is_fault"]

FAULT: Final = 1.15
"""A figure with a larger exponent grows faster than its size."""

MAX_EXPONENT: Final = 8.0


class Noise(NamedTuple):
    """The difference of two equal measurements: a constant, and a part of the value."""

    absolute: float
    relative: float

    def of(self, value: float) -> float:
        return self.absolute + self.relative * abs(value)


NOISE: Final = {
    "requests": Noise(0.5, 0.05),
    "requests/s": Noise(0.3, 0.1),
    "kB": Noise(0.5, 0.05),
    "kB/s": Noise(0.5, 0.1),
    "CPU ms": Noise(5.0, 0.15),
    "CPU ms/s": Noise(3.0, 0.15),
    "MiB": Noise(2.0, 0.05),
    "s": Noise(0.2, 0.2),
}
"""By unit. Other programs use the machine, so CPU and times differ the most."""


def exponent(sizes: Sequence[float], values: Sequence[float], noise: Noise) -> float:
    """Return the exponent of the part of a figure that grows; 0.0 if none does.

    With three sizes or more, the first, the middle and the last decide. With two, or if
    the figure grows between two of them only, it is the slope of the logarithms.

    Raises:
        ValueError: there are fewer than two sizes.
    """
    if len(sizes) < 2:
        raise ValueError("an exponent needs two sizes")
    places = (0, len(sizes) // 2, -1) if len(sizes) > 2 else (0, -1)
    low, *middle, high = ((sizes[at], values[at]) for at in places)
    if high[1] - low[1] <= noise.of(high[1]):
        return 0.0
    if middle and middle[0][1] - low[1] > noise.of(middle[0][1]):
        return _fitted(low, middle[0], high)
    start = middle[0] if middle else low
    return _slope(start, high, noise.absolute)


def is_fault(sizes: Sequence[float], values: Sequence[float], noise: Noise) -> bool:
    """Return whether a figure grows faster than its size, whatever the noise did."""
    if exponent(sizes, values, noise) <= FAULT:
        return False
    changed = [value - noise.of(value) for value in values[-1:]]
    earlier = [value + noise.of(value) for value in values[:-1]]
    return exponent(sizes, [*earlier, *changed], Noise(0.0, 0.0)) > FAULT


Point = tuple[float, float]


def _slope(low: Point, high: Point, floor: float) -> float:
    start = max(low[1], floor)
    if start <= 0:
        return MAX_EXPONENT
    return math.log(high[1] / start) / math.log(high[0] / low[0])


def _fitted(low: Point, middle: Point, high: Point) -> float:
    """Return k of `a + b * size ** k` through three points that rise."""
    wanted = (high[1] - middle[1]) / (middle[1] - low[1])

    def ratio(power: float) -> float:
        first, second, third = (each[0] ** power for each in (low, middle, high))
        return (third - second) / (second - first)

    return _bisected(ratio, wanted)


def _bisected(function: Callable[[float], float], wanted: float) -> float:
    """Return the argument of a rising function; its limits if it is outside them."""
    low, high = 0.01, MAX_EXPONENT
    while high - low > 0.001:
        middle = (low + high) / 2
        if function(middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
