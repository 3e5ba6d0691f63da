"""Medians over rounds, and ratios within rounds."""

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
    "bytes_above_base",
    "cpu_per_million",
    "distinct",
    "failure_reason",
    "field",
    "label_of",
    "ratios",
    "records_per_second",
    "select",
    "settled_samples",
    "spread_of",
]

Measurement = Mapping[str, Any]
Value = Callable[[Measurement], float | None]

# The client that the others are compared with: the first of these that was measured.
BASELINES: Final = ("confluent", "franz", "raw")


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum and maximum of several rounds."""

    median: float
    low: float
    high: float


def spread_of(values: Iterable[float]) -> Spread | None:
    if not (seen := list(values)):
        return None
    return Spread(median(seen), min(seen), max(seen))


def failure_reason(measurement: Measurement) -> str | None:
    """Return why a measurement is invalid, or None if it is valid."""
    if measurement["what"] == "missing":
        return str(measurement["why"])
    if "error" in measurement:
        return str(measurement["error"])
    wanted = measurement.get("wanted", 0)
    read = measurement.get("records", 0) + measurement.get("skipped", 0)
    if read < wanted:
        return f"read {read:,} of {wanted:,} records"
    return None


def select(
    measurements: Iterable[Measurement], what: str, **labels: Any
) -> list[Measurement]:
    """Return the valid measurements with these labels."""
    return [
        each
        for each in measurements
        if each["what"] == what
        and not failure_reason(each)
        and all(label_of(each, name) == value for name, value in labels.items())
    ]


def label_of(measurement: Measurement, name: str) -> Any:
    """Return a label, or None; measurements of consumers once had no size."""
    if name == "size" and measurement["what"] == "consumers":
        return measurement.get(name, 100)
    return measurement.get(name)


def distinct(measurements: Iterable[Measurement], *names: str) -> list[Any]:
    """Return the distinct values of one label, or tuples of several, sorted."""
    seen = {tuple(each[name] for name in names) for each in measurements}
    return sorted(values[0] if len(names) == 1 else values for values in seen)


def by_client(measurements: Iterable[Measurement], value: Value) -> dict[str, Spread]:
    """Return each client's figure over the rounds, in the roster's order."""
    values = defaultdict(list)
    for each in measurements:
        if (figure := value(each)) is not None:
            values[each["client"]].append(figure)
    return {
        name: found
        for name in CLIENTS
        if (found := spread_of(values.get(name, ()))) is not None
    }


def baseline_of(measurements: Sequence[Measurement]) -> str | None:
    there = {each["client"] for each in measurements}
    return next((name for name in BASELINES if name in there), None)


def ratios(
    measurements: Sequence[Measurement], value: Value, baseline: str
) -> dict[str, Spread]:
    """Return each client's figure divided by the baseline's of the same round."""
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


# Figures of one measurement


def records_per_second(measurement: Measurement) -> float | None:
    """Return records per second, from the first record to the last."""
    seconds = measurement["seconds"]
    return measurement["records"] / seconds if seconds else None


def cpu_per_million(measurement: Measurement) -> float | None:
    """Return CPU seconds per million records."""
    records = measurement["records"]
    return measurement["cpu"] / records * 1e6 if records else None


def bytes_above_base(measurement: Measurement) -> float | None:
    """Return the peak memory above the memory of the process after its imports."""
    base = measurement["base"]
    return None if base is None else measurement["peak"] - base


def settled_samples(measurement: Measurement) -> list[int]:
    """Return a slow consumer's memory samples, without the first ones."""
    samples: list[int] = measurement["samples"]
    return samples[round(measurement["first"] or 0) + 2 :]


def field(name: str) -> Value:
    return lambda measurement: measurement.get(name)
