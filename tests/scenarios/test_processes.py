"""Consumers in separate processes, one of which is killed."""

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.complete_lines import complete_lines
from tests.kafka_plugin import Admin
from tests.waiting import until_true

RECORDS = 90_000
PARTITIONS = 6
WINDOW = 2000
"""share.partition.max.record.locks: the maximum of locked records per partition."""


SESSION = 6
"""Seconds of the session timeout of a restarted consumer; Kafka's default is 45."""

KILLED = 0
"""The number of the process that is killed: the first."""


class Entry(NamedTuple):
    time: int
    kind: str
    partition: int
    first: int
    last: int
    count: int
    process: int


class Workers:
    """Worker processes of one group, and their logs."""

    def __init__(self, admin: Admin, topic: str, group: str, directory: Path) -> None:
        self._arguments = [admin.bootstrap_servers, topic, group]
        self._directory = directory
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, mode: str, member: str = "") -> subprocess.Popen[bytes]:
        log = self._directory / f"{len(self.processes)}"
        log.touch()
        module = [sys.executable, "-m", "tests.scenarios.worker"]
        arguments = [
            *self._arguments,
            mode,
            str(log),
            *([member] if member else []),
        ]
        process = subprocess.Popen([*module, *arguments])
        self.processes.append(process)
        return process

    def entries(self) -> list[Entry]:
        """Return all log entries, sorted by time."""
        found = []
        for log in self._directory.iterdir():
            for line in complete_lines(log):
                kind, time_, *numbers = line.split()
                partition, first, last, count = map(int, numbers)
                found.append(
                    Entry(
                        int(time_), kind, partition, first, last, count, int(log.name)
                    )
                )
        return sorted(found)

    def processed_count(self) -> int:
        return sum(j.read_bytes().count(b"P") for j in self._directory.iterdir())

    def wait_for_count(self, processed: int, seconds: float) -> None:
        until_true(
            lambda: self.processed_count() >= processed,
            seconds,
            what=f"{processed} records processed",
            pause=0.05,
        )

    def wait_for_offset(
        self, offset: int, partitions: set[int], seconds: float
    ) -> None:
        """Wait until this offset of each of these partitions is processed."""

        def is_processed() -> bool:
            processed = [e for e in self.entries() if e.kind == "P"]
            return partitions <= {e.partition for e in processed if e.first == offset}

        what = f"offset {offset} of {partitions} processed"
        until_true(is_processed, seconds, what=what, pause=0.02)

    def wait_until_idle(self, idle_seconds: float = 7.0) -> None:
        """Wait until no record was processed for some seconds.

        The default is longer than the reassignment of a killed member's partitions:
        its session timeout plus a heartbeat of the others.
        """
        count, since = -1, time.monotonic()
        end = since + 100
        while time.monotonic() - since < idle_seconds:
            assert time.monotonic() < end, f"still busy after {count} records"
            if (now := self.processed_count()) != count:
                count, since = now, time.monotonic()
            time.sleep(0.2)  # real time: a wrong redelivery would come late

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # it prints its stacks
                process.wait()
                raise


@pytest.fixture
def workers(admin: Admin, tmp_path: Path) -> Iterator[Workers]:
    topic = admin.create_topic(partitions=PARTITIONS)
    group = f"group-{topic}"
    config = {
        "share.auto.offset.reset": "earliest",
        # Partitions of a killed member are reassigned after this; default 45 s.
        "share.session.timeout.ms": "4000",
        "share.heartbeat.interval.ms": "1000",
    }
    admin.set_group_config(group, config)
    for partition in range(PARTITIONS):
        mine = range(partition, RECORDS, PARTITIONS)
        admin.produce(topic, [b"%d" % i for i in mine], partition=partition)
    running = Workers(admin, topic, group, tmp_path)
    yield running
    for process in running.processes:
        process.kill()
        process.wait()


def record_number(entry: Entry, offset: int) -> int:
    return offset * PARTITIONS + entry.partition


def run_and_kill_one(workers: Workers, mode: str) -> int:
    """Run three workers and kill one; return the time of the kill in nanoseconds."""
    killed = workers.start(mode)
    workers.start(mode)
    workers.start(mode)
    workers.wait_for_count(RECORDS // 3, 60)
    killed_at = time.monotonic_ns()
    killed.kill()
    killed.wait()
    workers.wait_for_count(RECORDS, 100)
    workers.wait_until_idle()  # time for wrong redeliveries
    workers.stop()
    return killed_at


@pytest.mark.slow("starts processes, and waits for the session timeout of one")
@pytest.mark.timeout(300)
def test_killed_implicit_consumer_loses_no_record_and_repeats_none_accepted(
    workers: Workers,
) -> None:
    run_and_kill_one(workers, "implicit")
    processed: set[int] = set()
    accepted: set[int] = set()
    for entry in workers.entries():
        if entry.kind == "P":
            number = record_number(entry, entry.first)
            assert number not in accepted, f"{entry} was accepted before"
            processed.add(number)
        elif entry.kind == "1":
            for offset in range(entry.first, entry.last + 1):
                accepted.add(record_number(entry, offset))

    assert processed == set(range(RECORDS))
    assert len(accepted) > RECORDS * 0.9


@pytest.mark.slow("starts processes, and waits for the session timeout of one")
@pytest.mark.timeout(300)
def test_killed_explicit_consumer_keeps_confirmed_acknowledgements(
    workers: Workers,
) -> None:
    killed_at = run_and_kill_one(workers, "explicit")
    deliveries: dict[int, list[int]] = defaultdict(list)
    released: dict[int, int] = {}
    released_by_survivors: set[int] = set()
    over: set[int] = set()
    lost_attempts = 0
    for entry in workers.entries():
        numbers = [record_number(entry, o) for o in range(entry.first, entry.last + 1)]
        if entry.kind == "P":
            assert numbers[0] not in over, f"{entry} was accepted or rejected before"
            if numbers[0] in released and entry.count != 2:
                # The killed worker had locked it, but not processed it.
                assert entry.time > killed_at
                lost_attempts += 1
            deliveries[numbers[0]].append(entry.count)
            if numbers[0] % 3 == 0 and entry.count == 1 and entry.process != KILLED:
                released_by_survivors.add(numbers[0])
        elif entry.kind == "2":
            released.update(dict.fromkeys(numbers, entry.time))
        else:
            over.update(numbers)

    assert set(deliveries) == set(range(RECORDS))
    assert lost_attempts <= WINDOW * PARTITIONS
    for number in released:
        assert len(deliveries[number]) >= 2
    # The killed worker can have released more: it never learnt the results.
    assert released_by_survivors
    assert released_by_survivors <= released.keys()


@pytest.mark.slow("starts processes, and waits for the session timeout of one")
@pytest.mark.punctual
@pytest.mark.timeout(200)
def test_restarted_consumer_with_same_member_id_resumes_immediately(
    admin: Admin, tmp_path: Path
) -> None:
    topic = admin.create_topic(partitions=2)
    group = f"group-{topic}"
    config = {
        "share.auto.offset.reset": "earliest",
        "share.session.timeout.ms": str(SESSION * 1000),
    }
    admin.set_group_config(group, config)
    for partition in (0, 1):
        admin.produce(topic, [b"0"], partition=partition)
    workers = Workers(admin, topic, group, tmp_path)

    def restarted(member: str, timeout: float) -> tuple[float, float]:
        """Kill, produce and start.

        Returns:
            the seconds until records are processed: since the kill, and since the new
            process runs, which can be a lot later on a busy machine.
        """
        number = len(workers.processes)
        workers.processes[-1].kill()
        for partition in (0, 1):
            admin.produce(topic, [b"%d" % number], partition=partition)
        began = time.monotonic()
        workers.start("single", member)
        workers.wait_for_offset(number, {0, 1}, timeout)
        ended = time.monotonic()
        run = max(each.time for each in workers.entries() if each.kind == "S")
        return ended - began, ended - run / 1e9

    try:
        workers.start("single", "pod-1")
        workers.wait_for_offset(0, {0, 1}, 30)
        attempts: list[float] = []
        while not attempts or (min(attempts) >= 3 and len(attempts) < 3):
            attempts.append(restarted("pod-1", 20)[1])
        assert min(attempts) < 3, attempts

        assert restarted("pod-2", 80)[0] > SESSION * 2 / 3, "by the session timeout"
    finally:
        for process in workers.processes:
            process.kill()
            process.wait()
