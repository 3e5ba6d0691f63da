"""The slopes that are allowed. Pure.

Memory can grow by 1 MiB an hour, and throughput can fall by 1 % an hour. Everything
else is flat. A quantity is not flat if both are true:

- 0 is below the 95 % confidence interval of its slope: the growth is no coincidence;
- from the first to the last minute it grows by more than its noise (the standard
  deviation of the minutes around the line), and by more than its number in FLAT.

The noise is the tolerance, since a measurement cannot show less: a p99 that changes by
3 ms from minute to minute is flat if it grows by 2 ms during the run. The interval
alone would find growth in many runs without any, as neighbouring minutes are alike (a
kill, another load of the machine). The longer a run, the smaller is the slope that it
finds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.soak.slopes import Points, Slope, theil_sen

__all__ = ["FLAT", "MEANINGFUL", "Trend", "grown_types", "judge"]

MAX_GROWTH: Final = 1.0
"""MiB of memory in an hour."""

MAX_LOSS: Final = 0.01
"""The part of the throughput in an hour."""

FLAT: Final[Mapping[str, float]] = {
    "objects": 200.0,
    "descriptors": 1.0,
    "tasks": 1.0,
    "threads": 1.0,
    "p50": 1.0,
    "p99": 1.0,
    "log lines": 1.0,
}
"""The flat quantities, with the growth that is none, however small the noise is:
objects of records in flight, one descriptor, a millisecond, a line in a minute."""

MEANINGFUL: Final = 2.0
"""Hours after the warm-up below which slopes do not decide."""

GROWN: Final = 10


@dataclass(frozen=True)
class Trend:
    """A quantity, its line in units per hour, and whether its limit is kept."""

    name: str
    line: Slope
    limit: str
    is_good: bool


def judge(name: str, points: Points) -> Trend:
    """Return the trend of "rss", "records/s", or one of FLAT.

    Args:
        points: hours and values.
    """
    line = theil_sen(points)
    match name:
        case "rss":
            return Trend(name, line, f"+{MAX_GROWTH:g}/h", line.slope <= MAX_GROWTH)
        case "records/s":
            lowest = -MAX_LOSS * line.middle
            return Trend(name, line, f"-{MAX_LOSS:.0%}/h", line.slope >= lowest)
        case _:
            tolerance = max(line.noise, FLAT[name])
            is_flat = line.low <= 0 or line.growth <= tolerance
            return Trend(name, line, "flat", is_flat)


def grown_types(
    first: Mapping[str, int], last: Mapping[str, int]
) -> Sequence[tuple[str, int]]:
    """Return the ten types whose objects have become more by most, and by how many."""
    grown = [(name, count - first.get(name, 0)) for name, count in last.items()]
    grown = [(name, by) for name, by in grown if by > 0]
    return sorted(grown, key=lambda each: -each[1])[:GROWN]
