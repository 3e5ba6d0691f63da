"""Processes of share workers, and their logs."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sharecons import Record, ShareGroupAdmin, TopicPartition
from sharecons.errors import BrokerError
from tests.complete_lines import complete_lines
from tests.kafka_plugin import Admin
from tests.scenarios.embedded_admin import AnyAdmin
from tests.scenarios.queue import Queue, unsettled
from tests.scenarios.repeating import repeat
from tests.waiting import until_true

__all__ = [
    "Entry",
    "Position",
    "WorkerProcesses",
    "all_records",
    "wait_until_settled",
]

PROGRAM = "tests.scenarios.share_worker_program"


class Position(NamedTuple):
    topic: str
    partition: int
    offset: int


class Entry(NamedTuple):
    """A line of a log.

    Attributes:
        run: the number of the process; the first is 0.
        at: the position that the record was delivered from.
        origin: the position of the original, if the record is a copy.
    """

    run: int
    kind: str
    number: int
    at: Position
    delivery_count: int
    origin: Position


class WorkerProcesses:
    """Processes of one group's worker, one after the other or side by side."""

    def __init__(self, queue: Queue, directory: Path, **options: Any) -> None:
        self._directory = directory
        self._options = {
            "bootstrap": queue.admin.bootstrap_servers,
            "topic": queue.topic,
            "group": queue.group,
            **options,
        }
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, **options: Any) -> subprocess.Popen[bytes]:
        log = self._log(len(self.processes))
        log.touch()
        described = json.dumps({**self._options, **options, "log": str(log)})
        process = subprocess.Popen([sys.executable, "-m", PROGRAM, described])
        self.processes.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes], within: float) -> None:
        """Send SIGTERM; the process must end without an error, in `within` seconds."""
        process.send_signal(signal.SIGTERM)
        try:
            assert 0 == process.wait(within)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # it prints its stacks
            process.wait()
            raise

    def kill_all(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def entries(self) -> list[Entry]:
        """Return the lines of all logs, run by run."""
        return [
            _entry(run, line)
            for run in range(len(self.processes))
            for line in self._lines(run)
        ]

    def of_kind(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries() if entry.kind == kind]

    def count(self, kind: str, run: int = -1) -> int:
        """Return how many lines of a kind the log of one run has."""
        lines = self._lines(run % len(self.processes))
        return sum(line.startswith(f"{kind} ") for line in lines)

    def wait_for(self, kind: str, count: int, *, within: float = 40.0) -> None:
        """Wait until the log of the last run has `count` lines of a kind."""
        what = f"{count} lines of {kind}"
        self.wait_until(lambda: self.count(kind) >= count, within=within, what=what)

    def wait_until(
        self,
        condition: Callable[[], bool],
        *,
        within: float,
        what: str,
        pause: float = 0.02,
    ) -> None:
        """Wait until the condition is true, while the last process runs."""

        def is_true() -> bool:
            assert self.processes[-1].poll() is None, "the process has ended"
            return condition()

        until_true(is_true, within, what=what, pause=pause)

    def _log(self, run: int) -> Path:
        return self._directory / f"run-{run}"

    def _lines(self, run: int) -> Sequence[str]:
        return complete_lines(self._log(run))


def _entry(run: int, line: str) -> Entry:
    kind, number, *fields = line.split()
    topic, partition, offset, count, origin, origin_partition, origin_offset = fields
    return Entry(
        run,
        kind,
        int(number),
        Position(topic, int(partition), int(offset)),
        int(count),
        Position(origin, int(origin_partition), int(origin_offset)),
    )


async def wait_until_settled(
    admin: AnyAdmin, group: str, partitions: Mapping[str, int], *, within: float = 60.0
) -> None:
    """Wait until every record of some topics is acknowledged or archived.

    A record of the first topic can have a copy in the next one, so the topics are read
    in this order. `partitions` has the number of partitions of each topic.
    """
    async with ShareGroupAdmin(
        bootstrap_servers=admin.bootstrap_servers, network=admin.network
    ) as client:
        for topic, count in partitions.items():
            keys = [TopicPartition(topic, number) for number in range(count)]

            async def read_lags(keys: list[TopicPartition] = keys) -> list[int | None]:
                ends = (await client.list_offsets(keys)).found
                listed = await client.list_share_group_offsets(group, partitions=keys)
                if isinstance(listed[group].error, BrokerError):
                    return [None]  # the worker has not joined yet
                offsets = listed[group].value.found
                # The lag is None until the first acknowledgement.
                return [
                    ends[key].offset if offsets[key].lag is None else offsets[key].lag
                    for key in keys
                ]

            await repeat(
                read_lags, until=lambda lags: lags == [0] * len(lags), within=within
            )


async def all_records(admin: Admin, topic: str) -> list[Record[Any, Any]]:
    """Return all records of a topic with at most 2,000."""
    reader = f"reader-{time.monotonic_ns()}"
    admin.set_group_config(reader, {"share.auto.offset.reset": "earliest"})
    return await unsettled(admin, reader, topic)
