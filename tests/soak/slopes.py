"""The slope of a noisy series. Pure.

The Theil-Sen slope is the median of the slopes between all pairs of points: up to 29 %
of them can be outliers, as minutes with a kill are. Its confidence interval (Sen 1968)
needs no distribution of the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import Final

__all__ = ["Points", "Slope", "theil_sen"]

CONFIDENCE: Final = 1.96
"""Standard deviations of Kendall's score on each side: 95 %."""

MAX_POINTS: Final = 500
"""The points of a longer series are medians of neighbours: pairs are squares."""

DEVIATION: Final = 1.4826
"""Median absolute deviations in a standard deviation, if noise is Gaussian."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Slope:
    """The line through a series.

    Attributes:
        slope: the change of the value for each unit of time.
        low, high: the interval that has the true slope with 95 % confidence.
        noise: the spread of the points around the line, as a standard deviation.
        middle: the median value.
        length: from the first to the last point.
    """

    slope: float
    low: float
    high: float
    noise: float
    middle: float
    length: float

    @property
    def growth(self) -> float:
        """The change from the first to the last point on the line."""
        return self.slope * self.length


def theil_sen(points: Points) -> Slope:
    """Return the line through points (time, value), which are in the order of time.

    Two points at least must have different times; otherwise all is 0.
    """
    points = _thinned(points)
    middle = median(value for _, value in points) if points else 0.0
    slopes = sorted(
        (value - before) / (at - then)
        for index, (at, value) in enumerate(points)
        for then, before in points[:index]
        if at > then
    )
    if not slopes:
        return Slope(0.0, 0.0, 0.0, 0.0, middle, 0.0)
    slope = median(slopes)
    low, high = _interval(slopes, len(points))
    start = median(value - slope * at for at, value in points)
    residuals = [abs(value - slope * at - start) for at, value in points]
    length = points[-1][0] - points[0][0]
    return Slope(slope, low, high, DEVIATION * median(residuals), middle, length)


def _interval(slopes: Sequence[float], points: int) -> tuple[float, float]:
    """Return the slopes whose ranks are CONFIDENCE deviations from the middle."""
    spread = CONFIDENCE * sqrt(points * (points - 1) * (2 * points + 5) / 18)
    last = len(slopes) - 1
    low = round((last - spread) / 2)
    return slopes[max(0, low)], slopes[min(last, last - low)]


def _thinned(points: Points) -> Points:
    width = -(-len(points) // MAX_POINTS)
    if width <= 1:
        return points
    groups = (points[i : i + width] for i in range(0, len(points), width))
    return [(median(at for at, _ in g), median(v for _, v in g)) for g in groups]
