"""Progress of a worker as text: rates and counts."""

from typing import Final, final

from sharecons.worker.stats import WorkerStats

__all__ = ["ProgressMeter", "done", "numbers"]

PERIOD: Final = 2.0
"""Seconds over which the rate is measured."""


def done(stats: WorkerStats) -> int:
    """Return the number of records that the worker is finished with."""
    return stats.accepted + stats.rejected + stats.dead_lettered + stats.moved


def numbers(stats: WorkerStats) -> dict[str, int]:
    """Return the numbers by name."""
    return stats._asdict()


@final
class ProgressMeter:
    """Measures records per second; times in seconds."""

    def __init__(self, now: float) -> None:
        self._samples = [(now, 0)]

    def rate(self, stats: WorkerStats, now: float) -> float:
        """Return the records per second, over the last two seconds or more."""
        count = done(stats)
        while len(self._samples) > 1 and self._samples[1][0] <= now - PERIOD:
            del self._samples[0]
        began, before = self._samples[0]
        self._samples.append((now, count))
        return (count - before) / (now - began) if now > began else 0.0

    def line(self, stats: WorkerStats, now: float) -> str:
        """Return the line for a terminal."""
        parts = [
            f"{self.rate(stats, now):,.0f} records/s",
            f"{done(stats):,} done",
            f"{stats.running:,} running",
            f"{stats.waiting:,} waiting",
            f"{stats.retried:,} retried",
            f"{stats.dead_lettered:,} dead-lettered",
        ]
        if stats.rejected:
            parts.append(f"{stats.rejected:,} rejected")
        return "  ".join(parts)
