"""What the programs in Python share: arguments, what they measure, what they print."""

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = [
    "WORK",
    "Meter",
    "Tally",
    "WarmUp",
    "arguments",
    "memory",
    "percentiles",
    "said",
]

WORK: Final = ("throughput", "latency", "redelivery", "slow")
PROCESSES: Final = Path("/proc")
MAXRSS: Final = 1 if sys.platform == "darwin" else 1024  # bytes in one of its units


def arguments(modes: Sequence[str] = ("implicit",)) -> argparse.Namespace:
    """Read the command line that all clients have; units are seconds."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--what", choices=WORK, default="throughput")
    add("--bootstrap", required=True, help="the one broker's address")
    add("--group", required=True, help="share.auto.offset.reset is earliest already")
    add("--topic", required=True)
    add("--records", type=int, default=0, help="end after so many, in all consumers")
    add("--max-records", type=int, default=500, help="of one fetch")
    add("--consumers", type=int, default=1, help="in this one process")
    add("--mode", choices=modes, default=modes[0])
    add("--loop", choices=("asyncio", "uvloop", "trio"), default="asyncio")
    add("--warm-up", type=float, default=3.0, help="not counted, after the first")
    add("--seconds", type=float, default=8.0, help="of latency, and of slow")
    add("--pause", type=float, default=0.005, help="for each record, of slow")
    add("--patience", type=float, default=120.0, help="give what there is after this")
    add("--kafka-version", default="4.3.0", help="whose tools to use, in Java")
    return parser.parse_args()


def said(result: object) -> None:
    """Print a line of JSON for whoever started us; the last has what was measured."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


class Tally:
    """What one consumer got, or several of one process together."""

    __slots__ = ("count", "size", "wanted")

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.count = 0
        self.size = 0  # bytes of values

    def add(self, count: int, size: int) -> None:
        self.count += count
        self.size += size


class WarmUp:
    """The time after the first record in which nothing is measured."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None

    def over(self) -> bool:
        """Say whether it is over; the first asking begins it."""
        if self._end is None:
            self._end = time.perf_counter() + self._seconds
        return time.perf_counter() >= self._end


class Meter:
    """Times, CPU and memory of this process; made when all imports are done."""

    def __init__(self) -> None:
        self._base = _own("VmRSS")
        self._started = time.perf_counter()
        self._first: float | None = None
        self._cpu = 0.0

    def first(self) -> None:
        """Say that a record is there; only the first time counts."""
        if self._first is None:
            self._cpu = time.process_time()
            self._first = time.perf_counter()

    def report(self, tally: Tally) -> dict[str, float | None]:
        """Give what there is to tell, at the last record; CPU is of all threads."""
        now, cpu = time.perf_counter(), time.process_time()
        first = now if self._first is None else self._first
        return {
            "records": tally.count,
            "bytes": tally.size,
            "seconds": now - first,
            "cpu": cpu - self._cpu,
            "first": None if self._first is None else first - self._started,
            "base": self._base,
            "peak": _own("VmHWM"),
        }


def memory(name: str, process: int | str = "self") -> int:
    """Give bytes that are resident now (VmRSS) or were at most (VmHWM); 0 if unknown.

    Linux's own figures: ru_maxrss begins with that of whoever started a process.
    """
    try:
        lines = (PROCESSES / str(process) / "status").read_text().splitlines()
    except OSError:
        return 0
    (line,) = (line for line in lines if line.startswith(name))
    return int(line.split()[1]) * 1024


def _own(name: str) -> int:
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS
    return memory(name) or largest


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Give the ranks that tables show, and the largest; nothing of nothing."""
    if not values:
        return {}
    ordered = sorted(values)
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    last = len(ordered) - 1
    picked = {name: ordered[round(last * rank)] for name, rank in ranks.items()}
    return {**picked, "max": ordered[-1]}
