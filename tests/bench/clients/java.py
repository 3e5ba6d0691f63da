"""Kafka's ShareConsumerPerformance, on a JVM started like Kafka's scripts do.

Its times start at the first poll, so the start of the JVM is not measured. Its first
progress report gives the time of the first record, to within the report interval.
"""

import subprocess
from argparse import Namespace
from datetime import datetime
from typing import IO, Any, Final

import psutil

from sharecons.testing.kafka import KafkaCluster
from tests.bench.clients.common import arguments, memory_bytes, print_result

PROGRAM: Final = "org.apache.kafka.tools.ShareConsumerPerformance"
HEAP: Final = "-Xmx512M"  # as kafka-share-consumer-perf-test.sh
REPORT_INTERVAL: Final = 100  # milliseconds; only the first report is used
TIME_FORMAT: Final = "%Y-%m-%d %H:%M:%S:%f"
PROGRESS: Final = "for share consumer"


def throughput(options: Namespace) -> object:
    with subprocess.Popen(_command(options), stdout=subprocess.PIPE, text=True) as java:
        assert java.stdout is not None
        try:
            return _follow_output(psutil.Process(java.pid), java.stdout)
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
        *("--timeout", str(int(options.timeout * 1000))),
        *("--reporting-interval", str(REPORT_INTERVAL)),
        "--show-detailed-stats",
        "--hide-header",
    )
    return [java, HEAP, *rest]


def _follow_output(process: psutil.Process, lines: IO[str]) -> object:
    """Read the output, and the process's CPU and memory when its lines arrive."""
    first_report: list[str] = []
    cpu = 0.0
    for line in lines:
        if PROGRESS in line and not first_report:
            first_report, cpu = _columns(line), _cpu(process)
        elif line[:2] == "20" and PROGRESS not in line:
            return _report(first_report, _columns(line), _cpu(process) - cpu, process)
    raise RuntimeError(f"{PROGRAM} ended without a result")


def _report(
    first_report: list[str], last: list[str], cpu: float, process: psutil.Process
) -> dict[str, Any]:
    started_at = _time(first_report[0]) if first_report else _time(last[0])
    first_time = _time(first_report[1]) if first_report else started_at
    return {
        "records": int(last[5]),
        "bytes": round(float(last[2]) * 2**20),
        "seconds": _time(last[1]) - first_time,
        "cpu": cpu,
        "first": first_time - started_at if first_report else None,
        "base": None,  # not applicable to a JVM
        "peak": _peak(process),
    }


def _columns(line: str) -> list[str]:
    return [column.strip() for column in line.removesuffix("\n").split(",")]


def _time(text: str) -> float:
    return datetime.strptime(text, TIME_FORMAT).timestamp()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _peak(process: psutil.Process) -> int:
    return memory_bytes("VmHWM", process.pid) or process.memory_info().rss


def main() -> None:
    print_result(throughput(arguments()))


if __name__ == "__main__":
    main()
