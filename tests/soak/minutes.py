"""Records/s and latencies, minute by minute, beside and during kills. Pure."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Deliveries", "Latency", "Minute", "split"]

BEFORE: Final = 5.0
AFTER: Final = 55.0
"""A record belongs to a kill if its way from the producer to the end of its handler
touches the 60 s around the kill."""

MS: Final = 1000.0


class Deliveries:
    """The records that one process has handled.

    Attributes:
        handled: when each was handled.
        latencies: seconds from the producer to this time; negative for records whose
            handlers fail, wait or are slow as planned.
    """

    def __init__(self) -> None:
        self.handled = array("d")
        self.latencies = array("d")

    def add(self, handled: float, latency: float | None) -> None:
        self.handled.append(handled)
        self.latencies.append(-1.0 if latency is None else latency)


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in milliseconds."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Minute:
    """The records of one process in one minute, or in a shorter interval.

    Attributes:
        at: its end, in seconds after the begin of the run.
        rate: records/s handled.
        beside: latencies of the records beside kills; None if there are none.
        during: of the records during kills.
    """

    at: float
    rate: float
    beside: Latency | None
    during: Latency | None


def split(
    deliveries: Deliveries,
    kills: Sequence[float],
    *,
    begin: float,
    end: float,
    interval: float,
) -> list[Minute]:
    """Return the complete intervals from `begin` to `end`."""
    count = int((end - begin) / interval)
    rates = [0] * count
    beside: list[list[float]] = [[] for _ in range(count)]
    during: list[list[float]] = [[] for _ in range(count)]
    for at, latency in zip(deliveries.handled, deliveries.latencies, strict=True):
        index = int((at - begin) / interval)
        if not 0 <= at - begin < count * interval:
            continue
        rates[index] += 1
        if latency >= 0.0:
            group = during if _is_near(kills, at - latency, at) else beside
            group[index].append(latency)
    return [
        Minute(
            (index + 1) * interval,
            rates[index] / interval,
            _percentiles(beside[index]),
            _percentiles(during[index]),
        )
        for index in range(count)
    ]


def _is_near(kills: Sequence[float], first: float, last: float) -> bool:
    return any(last >= kill - BEFORE and first <= kill + AFTER for kill in kills)


def _percentiles(latencies: list[float]) -> Latency | None:
    if not latencies:
        return None
    latencies.sort()
    last = len(latencies) - 1
    return Latency(
        MS * latencies[round(0.5 * last)], MS * latencies[round(0.99 * last)]
    )
