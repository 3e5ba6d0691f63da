"""Kafka's own ShareConsumerPerformance, on a JVM as Kafka's scripts start it.

What it prints begins at its first poll: the start of the JVM is not counted. It
gives the time of the first record away if it is to report its progress often.
"""

import subprocess
from argparse import Namespace
from datetime import datetime
from typing import IO, Any, Final

import psutil

from sharecons.testing.kafka import KafkaCluster
from tests.bench.clients.common import arguments, memory, said

PROGRAM: Final = "org.apache.kafka.tools.ShareConsumerPerformance"
HEAP: Final = "-Xmx512M"  # of kafka-share-consumer-perf-test.sh
OFTEN: Final = 100  # milliseconds between two reports, of which the first counts
TIME: Final = "%Y-%m-%d %H:%M:%S:%f"
PROGRESS: Final = "for share consumer"


def throughput(options: Namespace) -> object:
    with subprocess.Popen(_command(options), stdout=subprocess.PIPE, text=True) as java:
        assert java.stdout is not None
        try:
            return _measured(psutil.Process(java.pid), java.stdout)
        finally:
            java.kill()


def _command(options: Namespace) -> list[str]:
    java, *rest = KafkaCluster(options.kafka_version).java_command(
        PROGRAM,
        *("--bootstrap-server", options.bootstrap),
        *("--topic", options.topic),
        *("--group", options.group),
        *("--num-records", str(options.records)),
        *("--command-property", f"max.poll.records={options.max_records}"),
        *("--timeout", str(int(options.patience * 1000))),
        *("--reporting-interval", str(OFTEN)),
        "--show-detailed-stats",
        "--hide-header",
    )
    return [java, HEAP, *rest]


def _measured(process: psutil.Process, lines: IO[str]) -> object:
    """Follow what it prints: the process's own figures are taken as lines come."""
    first: list[str] = []
    cpu = 0.0
    for line in lines:
        if PROGRESS in line and not first:
            first, cpu = _columns(line), _cpu(process)
        elif line[:2] == "20" and PROGRESS not in line:
            return _report(first, _columns(line), _cpu(process) - cpu, process)
    raise RuntimeError(f"{PROGRAM} ended without a result")


def _report(
    first: list[str], last: list[str], cpu: float, process: psutil.Process
) -> dict[str, Any]:
    begun = _time(first[0]) if first else _time(last[0])
    there = _time(first[1]) if first else begun
    return {
        "records": int(last[5]),
        "bytes": round(float(last[2]) * 2**20),
        "seconds": _time(last[1]) - there,
        "cpu": cpu,
        "first": there - begun if first else None,
        "base": None,  # a JVM has no such moment
        "peak": _peak(process),
    }


def _columns(line: str) -> list[str]:
    return [column.strip() for column in line.removesuffix("\n").split(",")]


def _time(text: str) -> float:
    return datetime.strptime(text, TIME).timestamp()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _peak(process: psutil.Process) -> int:
    return memory("VmHWM", process.pid) or process.memory_info().rss


def main() -> None:
    said(throughput(arguments()))


if __name__ == "__main__":
    main()
