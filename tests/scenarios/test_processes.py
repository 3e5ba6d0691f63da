"""Consumers in processes of their own, one of them killed without a word."""

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kafka_plugin import Admin, EmbeddedCluster, Kafka

RECORDS = 200_000
PARTITIONS = 6
WINDOW = 2000
"""share.partition.max.record.locks: what can be held of a partition at a time."""


class Entry(NamedTuple):
    at: int
    what: str
    partition: int
    first: int
    last: int
    count: int


class Workers:
    """Worker processes of one group, and their journals."""

    def __init__(self, admin: Admin, topic: str, group: str, directory: Path) -> None:
        self._arguments = [admin.bootstrap_servers, topic, group]
        self._directory = directory
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, mode: str, member: str = "") -> subprocess.Popen[bytes]:
        journal = self._directory / f"{len(self.processes)}"
        journal.touch()
        module = [sys.executable, "-m", "tests.scenarios.worker"]
        arguments = [
            *self._arguments,
            mode,
            str(journal),
            *([member] if member else []),
        ]
        process = subprocess.Popen([*module, *arguments])
        self.processes.append(process)
        return process

    def entries(self) -> list[Entry]:
        """All that was written down, in order of time."""
        found = []
        for journal in self._directory.iterdir():
            for line in journal.read_text().splitlines():
                what, *numbers = line.split()
                found.append(Entry(int(numbers[0]), what, *map(int, numbers[1:])))
        return sorted(found)

    def lines(self) -> int:
        return sum(j.read_bytes().count(b"P") for j in self._directory.iterdir())

    def wait_for(self, processed: int, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.lines() < processed:
            assert time.monotonic() < end, f"only {self.lines()} processed"
            time.sleep(0.05)

    def wait_for_offset(
        self, offset: int, partitions: set[int], seconds: float
    ) -> None:
        """Wait until this offset of each of these partitions was processed."""
        end = time.monotonic() + seconds
        while True:
            entries = [e for e in self.entries() if e.what == "P"]
            if partitions <= {e.partition for e in entries if e.first == offset}:
                return
            assert time.monotonic() < end, f"offset {offset} not of all: {entries}"
            time.sleep(0.05)

    def wait_for_quiet(self, calm: float = 12.0) -> None:
        """Wait until nothing was written down for so long.

        By default longer than it takes until partitions that only a killed member
        had are assigned anew: its session timeout, and a heartbeat of the others.
        """
        before, since = -1, time.monotonic()
        end = since + 100
        while time.monotonic() - since < calm:
            assert time.monotonic() < end, f"still at it after {before} processed"
            if (now := self.lines()) != before:
                before, since = now, time.monotonic()
            time.sleep(0.2)

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGUSR1)
                raise


@pytest.fixture
def workers(admin: Admin, tmp_path: Path) -> Iterator[Workers]:
    topic = admin.create_topic(partitions=PARTITIONS)
    group = f"group-{topic}"
    config = {
        "share.auto.offset.reset": "earliest",
        # What a killed member had is assigned anew after this; 45 s otherwise.
        "share.session.timeout.ms": "6000",
        "share.heartbeat.interval.ms": "2000",
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


def number_of(entry: Entry, offset: int) -> int:
    return offset * PARTITIONS + entry.partition


def run_with_a_kill(workers: Workers, mode: str) -> int:
    """Three workers; one is killed in the middle. Gives when, in nanoseconds."""
    victim = workers.start(mode)
    workers.start(mode)
    workers.start(mode)
    workers.wait_for(RECORDS // 3, 60)
    killed_at = time.monotonic_ns()
    victim.kill()
    victim.wait()
    workers.wait_for(RECORDS, 100)
    workers.wait_for_quiet()  # whatever should not come again has time to
    workers.stop()
    return killed_at


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_implicit_consumer_loses_nothing_and_repeats_nothing_accepted(
    workers: Workers,
) -> None:
    run_with_a_kill(workers, "implicit")
    processed: set[int] = set()
    accepted: set[int] = set()
    for entry in workers.entries():
        if entry.what == "P":
            number = number_of(entry, entry.first)
            assert number not in accepted, f"{entry} was accepted before"
            processed.add(number)
        elif entry.what == "1":
            for offset in range(entry.first, entry.last + 1):
                accepted.add(number_of(entry, offset))

    assert processed == set(range(RECORDS))
    assert len(accepted) > RECORDS * 0.9


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_explicit_consumer_keeps_to_what_was_said(workers: Workers) -> None:
    killed_at = run_with_a_kill(workers, "explicit")
    deliveries: dict[int, list[int]] = defaultdict(list)
    released: dict[int, int] = {}
    over: set[int] = set()
    lost_attempts = 0
    for entry in workers.entries():
        numbers = [number_of(entry, o) for o in range(entry.first, entry.last + 1)]
        if entry.what == "P":
            assert numbers[0] not in over, f"{entry} was accepted or rejected before"
            if numbers[0] in released and entry.count != 2:
                # It was held by the victim when it was killed, and seen by nobody.
                assert entry.at > killed_at
                lost_attempts += 1
            deliveries[numbers[0]].append(entry.count)
        elif entry.what == "2":
            released.update(dict.fromkeys(numbers, entry.at))
        else:
            over.update(numbers)

    assert set(deliveries) == set(range(RECORDS))
    assert lost_attempts <= WINDOW * PARTITIONS
    for number in released:
        assert len(deliveries[number]) >= 2
    assert len(released) > RECORDS * 0.3


@pytest.mark.slow
@pytest.mark.punctual
@pytest.mark.timeout(200)
def test_killed_consumer_of_a_kept_member_id_is_back_at_once(
    kafka: Kafka, tmp_path: Path
) -> None:
    admin = kafka.admin
    topic = admin.create_topic(partitions=2)
    group = f"group-{topic}"
    config = {"share.auto.offset.reset": "earliest"}
    session = 45  # seconds: Kafka's own default is what is looked at
    if isinstance(kafka.started, EmbeddedCluster):
        session = 6
        config["share.session.timeout.ms"] = str(session * 1000)
    admin.set_group_config(group, config)
    for partition in (0, 1):
        admin.produce(topic, [b"0"], partition=partition)
    workers = Workers(admin, topic, group, tmp_path)

    def restarted(member: str, patience: float) -> float:
        """Kill, produce and start: seconds until the new one has had what came."""
        number = len(workers.processes)
        workers.processes[-1].kill()
        for partition in (0, 1):
            admin.produce(topic, [b"%d" % number], partition=partition)
        began = time.monotonic()
        workers.start("single", member)
        workers.wait_for_offset(number, {0, 1}, patience)
        return time.monotonic() - began

    try:
        workers.start("single", "pod-1")
        workers.wait_for_offset(0, {0, 1}, 30)
        # The start of a Python process is in it, which a busy machine may draw out: so
        # there are three tries.
        tries: list[float] = []
        while not tries or (min(tries) >= 3 and len(tries) < 3):
            tries.append(restarted("pod-1", 20))
        assert min(tries) < 3, tries

        assert restarted("pod-2", 80) > session * 2 / 3, "by the session timeout"
    finally:
        for process in workers.processes:
            process.kill()
            process.wait()
