"""From measurements to figures: medians over rounds, and ratios within them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from tests.bench.roster import CLIENTS

__all__ = [
    "BASELINES",
    "Measurement",
    "Spread",
    "Value",
    "baseline_of",
    "by_client",
    "cpu",
    "distinct",
    "failed",
    "field",
    "over_base",
    "picked",
    "ratios",
    "settled",
    "speed",
    "spread",
]

Measurement = Mapping[str, Any]
Value = Callable[[Measurement], float | None]

# Whom the others are compared with: what Python programs use today, if it is there.
BASELINES: Final = ("confluent", "franz", "raw")


@dataclass(frozen=True, slots=True)
class Spread:
    """What several rounds gave."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread | None:
    if not (seen := list(values)):
        return None
    return Spread(median(seen), min(seen), max(seen))


def failed(measurement: Measurement) -> str | None:
    """Give why a measurement counts for nothing, or None if it counts."""
    if measurement["what"] == "missing":
        return str(measurement["why"])
    if "error" in measurement:
        return str(measurement["error"])
    wanted = measurement.get("wanted", 0)
    if measurement.get("records", 0) < wanted:
        return f"it got {measurement['records']:,} of {wanted:,} records"
    return None


def picked(
    measurements: Iterable[Measurement], what: str, **labels: Any
) -> list[Measurement]:
    """Give what was measured under these labels, and worked."""
    return [
        each
        for each in measurements
        if each["what"] == what
        and not failed(each)
        and all(each.get(name) == value for name, value in labels.items())
    ]


def distinct(measurements: Iterable[Measurement], *names: str) -> list[Any]:
    """Give the values of a label, or of several, that there are, in order."""
    seen = {tuple(each[name] for name in names) for each in measurements}
    return sorted(values[0] if len(names) == 1 else values for values in seen)


def by_client(measurements: Iterable[Measurement], value: Value) -> dict[str, Spread]:
    """Give each client's figure over the rounds, in the roster's order."""
    values = defaultdict(list)
    for each in measurements:
        if (figure := value(each)) is not None:
            values[each["client"]].append(figure)
    return {
        name: found
        for name in CLIENTS
        if (found := spread(values.get(name, ()))) is not None
    }


def baseline_of(measurements: Sequence[Measurement]) -> str | None:
    there = {each["client"] for each in measurements}
    return next((name for name in BASELINES if name in there), None)


def ratios(
    measurements: Sequence[Measurement], value: Value, baseline: str
) -> dict[str, Spread]:
    """Give each client's figure by the baseline's of the same round."""
    base = {
        (each["session"], each["round"]): value(each)
        for each in measurements
        if each["client"] == baseline
    }

    def ratio(each: Measurement) -> float | None:
        below = base.get((each["session"], each["round"]))
        above = value(each)
        return above / below if above is not None and below else None

    return by_client(measurements, ratio)


# Figures.


def speed(measurement: Measurement) -> float | None:
    """Records a second, from the first to the last."""
    seconds = measurement["seconds"]
    return measurement["records"] / seconds if seconds else None


def cpu(measurement: Measurement) -> float | None:
    """CPU seconds of a million records."""
    records = measurement["records"]
    return measurement["cpu"] / records * 1e6 if records else None


def over_base(measurement: Measurement) -> float | None:
    """Bytes that reading took, beside the interpreter and its imports."""
    base = measurement["base"]
    return None if base is None else measurement["peak"] - base


def settled(measurement: Measurement) -> list[int]:
    """Give a slow consumer's memory by the second, once it is at work."""
    samples: list[int] = measurement["samples"]
    return samples[round(measurement["first"] or 0) + 2 :]


def field(name: str) -> Value:
    return lambda measurement: measurement.get(name)
