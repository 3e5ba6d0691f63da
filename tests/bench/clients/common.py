"""Arguments, measuring and output shared by the client programs in Python."""

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

__all__ = [
    "JOIN_TIMEOUT",
    "WORKLOADS",
    "JoinError",
    "Limit",
    "Meter",
    "Tally",
    "WarmUp",
    "arguments",
    "memory_bytes",
    "percentiles",
    "print_result",
]

WORKLOADS: Final = ("throughput", "latency", "redelivery", "slow")
PROC: Final = Path("/proc")
JOIN_TIMEOUT: Final = 60.0  # seconds until each of several consumers has a record
UNMEASURED: Final = 0.2
"""The fraction of the records that several consumers read together before measuring:
after the wait for each other, a client that measures the pace begins slowly."""

MAXRSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024  # bytes


def arguments(modes: Sequence[str] = ("implicit",)) -> argparse.Namespace:
    """Parse the command line common to all clients; times are in seconds."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--what", choices=WORKLOADS, default="throughput")
    add("--bootstrap", required=True, help="address of the only broker")
    add("--group", required=True, help="its share.auto.offset.reset is earliest")
    add("--topic", required=True)
    add("--records", type=int, default=0, help="total of all consumers")
    add("--max-records", type=int, default=500, help="max.poll.records")
    add("--consumers", type=int, default=1, help="number in this process")
    add("--mode", choices=modes, default=modes[0])
    add("--loop", choices=("asyncio", "uvloop", "trio"), default="asyncio")
    add(
        "--warm-up",
        type=float,
        default=3.0,
        help="unmeasured time",
    )
    add("--seconds", type=float, default=8.0, help="duration of latency and slow")
    add("--pause", type=float, default=0.005, help="of slow, at a record")
    add("--pause-every", type=int, default=1, help="records between two pauses")
    add("--max-bytes", type=int, help="of a fetch; the default is the client's")
    add("--values", choices=("bytes", "memoryview"), default="bytes")
    add("--check-crcs", action="store_true", help="confluent's check.crcs")
    add("--timeout", type=float, default=120.0, help="report what was read until then")
    add("--kafka-version", default="4.3.0", help="Kafka whose Java tools run")
    return parser.parse_args()


def print_result(result: object) -> None:
    """Print a line of JSON to the benchmark; the last line is the result."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


class JoinError(Exception):
    """Not every consumer received a record within JOIN_TIMEOUT."""

    def __init__(self, joined: int, consumers: int) -> None:
        super().__init__(
            f"{joined} of {consumers} consumers received records in {JOIN_TIMEOUT:g} s"
        )


class Tally:
    """Number and size of the records of all consumers of this process."""

    __slots__ = ("count", "size", "wanted")

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.count = 0
        self.size = 0  # bytes of values

    def add(self, count: int, size: int) -> None:
        self.count += count
        self.size += size


class WarmUp:
    """The unmeasured time after the first record."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None

    def is_over(self) -> bool:
        """Return whether the time has passed; the first call starts it."""
        if self._end is None:
            self._end = time.perf_counter() + self._seconds
        return time.perf_counter() >= self._end


class Meter:
    """Times, CPU and memory of this process; create it after all imports.

    It measures from the first record or, with several consumers, from `restart`.
    """

    def __init__(self) -> None:
        self._base = _own_memory("VmRSS")
        self._started = time.perf_counter()
        self._first: float | None = None
        self._begun = self._cpu = 0.0
        self._skipped = self._skipped_size = 0

    def on_first_record(self) -> None:
        """Start measuring. Calls after the first have no effect."""
        if self._first is None:
            self._cpu = time.process_time()
            self._first = self._begun = time.perf_counter()

    def restart(self, count: int, size: int) -> None:
        """Measure from now on, without the records read so far and their bytes.

        Several consumers wait until each of them has received a record, and then read
        UNMEASURED of the records. Otherwise the time in which they join, during which
        the first of them reads alone, would be most of the run.
        """
        self._skipped, self._skipped_size = count, size
        self._cpu, self._begun = time.process_time(), time.perf_counter()

    def report(self, tally: Tally) -> dict[str, float | None]:
        """Return the result at the last record; CPU includes all threads."""
        now, cpu = time.perf_counter(), time.process_time()
        first_time = now if self._first is None else self._first
        return {
            "records": tally.count - self._skipped,
            "skipped": self._skipped,
            "bytes": tally.size - self._skipped_size,
            "seconds": 0.0 if self._first is None else now - self._begun,
            "cpu": cpu - self._cpu,
            "first": None if self._first is None else first_time - self._started,
            "base": self._base,
            "peak": _own_memory("VmHWM"),
        }


class Limit:
    """The number of records at which several consumers begin, and end, to be measured.

    Attributes:
        count: call `reached` once all consumers have read this many records.
    """

    __slots__ = ("_meter", "_on_end", "_wanted", "count")

    def __init__(self, wanted: int, meter: Meter, on_end: Callable[[], object]) -> None:
        self.count: float = int(wanted * UNMEASURED)
        self._wanted = wanted
        self._meter = meter
        self._on_end = on_end

    def reached(self, count: int, size: int) -> None:
        """Restart the meter at the first limit; call `on_end` at the second one.

        Args:
            count: the records that all consumers have read.
            size: the bytes of their values.
        """
        if self.count < self._wanted:
            self._meter.restart(count, size)
            self.count = self._wanted
        else:
            self.count = math.inf
            self._on_end()


def memory_bytes(name: str, process: int | str = "self") -> int:
    """Return current (VmRSS) or peak (VmHWM) resident bytes, 0 if unknown.

    These are Linux's figures. ru_maxrss includes the parent process's peak.
    """
    try:
        lines = (PROC / str(process) / "status").read_text().splitlines()
    except OSError:
        return 0
    (line,) = (line for line in lines if line.startswith(name))
    return int(line.split()[1]) * 1024


def _own_memory(name: str) -> int:
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_UNIT
    return memory_bytes(name) or largest


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return percentiles and the maximum; an empty dictionary without values."""
    if not values:
        return {}
    ordered = sorted(values)
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    last = len(ordered) - 1
    picked = {name: ordered[round(last * rank)] for name, rank in ranks.items()}
    return {**picked, "max": ordered[-1]}
