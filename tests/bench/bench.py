"""One benchmark run: broker, topics, and the measurement of one client."""

import argparse
import itertools
import logging
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any, Final

import anyio

from sharecons import Error, ShareGroupAdmin
from sharecons.testing.kafka import KafkaCluster
from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.processes import (
    ProgramError,
    parse_result,
    run_program,
    running_program,
)
from tests.bench.results import Results
from tests.bench.roster import CLIENTS, MissingError, Roster, clients_for
from tests.bench.segments import count_batches
from tests.kafka_plugin import Admin

__all__ = ["Bench"]

EARLIEST: Final = {"share.auto.offset.reset": "earliest"}
REHEARSAL_ROUND: Final = -1
WARM_UPS: Final = 3
TIMEOUT: Final = 120.0  # seconds for a client to read its records
STARTUP_TIMEOUT: Final = 60.0  # seconds more to start the JVM, join and close

log = logging.getLogger("tests.bench")


class Bench:
    """Topics, producers and client processes for the measurements."""

    def __init__(
        self,
        options: argparse.Namespace,
        cluster: KafkaCluster,
        cleanup: CleanupProcess,
        scratch: Path,
        results: Results,
    ) -> None:
        self.options = options
        self.results = results
        self._cluster = cluster
        self._bootstrap = cluster.bootstrap_servers
        self._cleanup = cleanup
        self._admin = Admin(self._bootstrap)
        self._roster = Roster(scratch, options.kafka_version)
        self._missing: set[str] = set()

    def turns(
        self, what: str, *, rounds: int | None = None, rehearse: bool = False
    ) -> Iterator[tuple[int, str]]:
        """Yield (round, client) pairs in the order of the run.

        Each round starts with a different client. A rehearsal round, if requested,
        comes first and is not recorded: the broker's first responses to each client's
        request versions are slow.
        """
        names = [
            name
            for name in clients_for(what, self.options.clients)
            if self._is_available(name)
        ]
        if rehearse:
            yield from ((REHEARSAL_ROUND, name) for name in names)
        rounds = self.options.rounds if rounds is None else rounds
        step = max(1, len(names) // max(1, rounds))
        for round_ in range(rounds):
            shift = round_ * step % max(1, len(names))
            for name in names[shift:] + names[:shift]:
                yield round_, name

    @contextmanager
    def topic(self, partitions: int) -> Iterator[str]:
        name = self._admin.create_topic(partitions)
        try:
            yield name
        finally:
            self._admin.delete_topic(name)

    @contextmanager
    def loaded_topic(
        self,
        partitions: int,
        records: int,
        size: int = 100,
        codec: str = "none",
        batch_size: int | None = None,
    ) -> Iterator[str]:
        """Create a topic with records spread evenly over its partitions.

        Sizes are in bytes; the default for batches is the option.
        """
        with self.topic(partitions) as name:
            if records > 1:
                what = f"{records:,} records of {size:,} bytes, {codec}"
                log.info("loading %s, partitions: %d", what, partitions)
            command = self._module_command(
                "load_topic",
                topic=name,
                partitions=partitions,
                records=records,
                size=size,
                codec=codec,
                batch_size=batch_size or self.options.batch_size,
                linger=self.options.linger,
            )
            run_program(command, self._cleanup, TIMEOUT)
            os.sync()  # a later write-back would disturb the measurement
            yield name

    @contextmanager
    def produce_at_rate(self, topic: str, rate: float) -> Iterator[None]:
        """Produce `rate` records per second during the block."""
        command = self._module_command(
            "paced_producer", topic=topic, rate=rate, seconds=TIMEOUT
        )
        with running_program(command, self._cleanup):
            yield

    def stored_bytes(self, topic: str) -> int:
        """Return the size of the topic's segments in bytes."""
        return sum(path.stat().st_size for path in self._segments(topic))

    def stored_batches(self, topic: str) -> int:
        """Return the number of record batches in the topic's segments."""
        return sum(map(count_batches, self._segments(topic)))

    def _segments(self, topic: str) -> Iterator[Path]:
        return self._cluster.log_directory(1).glob(f"{topic}-*/*.log")

    def measure(
        self,
        what: str,
        turn: tuple[int, str],
        topic: str,
        *,
        labels: Mapping[str, Any] | None = None,
        program: Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
        group_config: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        watch: Callable[[Popen[str]], None] = lambda _: None,
    ) -> None:
        """Run a client once in a new group and record its result.

        Args:
            what: the measurement.
            turn: round and client.
            topic: the topic to read.
            labels: conditions of the measurement, recorded with the result.
            program: arguments of the client program.
            extra: further values to record; `watch` can fill them during the run.
            group_config: of the new group, beside `share.auto.offset.reset`.
            timeout: seconds for the client to finish its work.
            watch: is called with the process; it can run until the process ends.
        """
        round_, name = turn
        run_labels = {
            "what": what,
            "client": name,
            "round": round_,
            **(labels or {}),
        }
        load = round(os.getloadavg()[0], 2)  # load before the run
        group = f"{name}-{uuid.uuid4().hex[:8]}"
        self._admin.set_group_config(group, {**EARLIEST, **(group_config or {})})
        command = [
            *self._roster.command(name),
            *self._options(topic=topic, group=group, timeout=timeout),
            *self._options(max_records=self.options.max_records, **program),
        ]
        try:
            result = parse_result(
                run_program(command, self._cleanup, timeout + STARTUP_TIMEOUT, watch)
            )
            if "wanted" in (extra or {}):
                result["unacknowledged"] = anyio.run(
                    _unacknowledged, self._bootstrap, group
                )
        except ProgramError as error:
            result = {"error": str(error)}
        if round_ == REHEARSAL_ROUND:
            return
        log.info("%s: %s", _describe(run_labels), ", ".join(_format_result(result)))
        self.results.append({**run_labels, "load": load, **result, **(extra or {})})

    def read(
        self,
        what: str,
        turn: tuple[int, str],
        topic: str,
        records: int,
        *,
        consumers: int = 1,
        labels: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        group_config: Mapping[str, str] | None = None,
    ) -> None:
        """Run a client that reads all `records` of the topic."""
        self.measure(
            what,
            turn,
            topic,
            program={"records": records, "consumers": consumers},
            labels=labels,
            extra={"wanted": records, **(extra or {})},
            group_config=group_config,
        )

    def warm_up(self) -> None:
        """Read a topic until internal topics exist and the broker's code is compiled.

        The JVM compiles during most of the first minute of load and occupies a core
        meanwhile, which slows down clients that need much CPU the most.
        """
        log.info("warming up the broker")
        records = self.options.records
        end = time.monotonic() + self.options.settle
        with self.loaded_topic(self.options.partitions, records) as topic:
            for turn in itertools.count(1):
                self.rehearse(topic, records)
                if turn >= WARM_UPS and time.monotonic() >= end:
                    break

    def rehearse(self, topic: str, records: int) -> None:
        """Read a topic once: the first client after loading it is slower than others.

        The broker still writes to the disk, and has not compiled the code for records
        of this size.
        """
        group = f"rehearsal-{uuid.uuid4().hex[:8]}"
        self._admin.set_group_config(group, EARLIEST)
        where = self._options(topic=topic, group=group, records=records)
        command = [*self._roster.command("raw"), *where]
        run_program(command, self._cleanup, TIMEOUT + STARTUP_TIMEOUT)

    def _is_available(self, name: str) -> bool:
        try:
            self._roster.command(name)
        except MissingError as error:
            if name not in self._missing:
                self._missing.add(name)
                log.info("%s is skipped: %s", CLIENTS[name].title, error)
                self.results.append(
                    {"what": "missing", "client": name, "why": str(error)}
                )
            return False
        return True

    def _module_command(self, name: str, **arguments: Any) -> list[str]:
        return [
            sys.executable,
            "-m",
            f"tests.bench.{name}",
            *self._options(**arguments),
        ]

    def _options(self, **arguments: Any) -> list[str]:
        words = ["--bootstrap", self._bootstrap]
        for name, value in arguments.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return words


async def _unacknowledged(bootstrap: str, group: str) -> int | None:
    """Return the group's lag in records, or None if the broker does not report it."""
    try:
        async with ShareGroupAdmin(bootstrap_servers=bootstrap) as admin:
            listed = (await admin.list_share_group_offsets(group))[group].value
            lags = [offset.lag for offset in listed.found.values()]
    except Error:
        return None
    return sum(lag or 0 for lag in lags) if lags and None not in lags else None


def _describe(run_labels: Mapping[str, Any]) -> str:
    """Return the measurement, its conditions and the client for the log."""
    labels = dict(run_labels)
    what, client, round_ = (labels.pop(name) for name in ("what", "client", "round"))
    under = [f"{name}={value}" for name, value in labels.items()]
    return f"{' '.join([what, *under])} round {round_ + 1}, {client}"


def _format_result(result: Mapping[str, Any]) -> Iterator[str]:
    if "error" in result:
        yield f"FAILED: {result['error']}"
    if result.get("seconds") and result.get("first"):
        records, seconds = result["records"], result["seconds"]
        yield f"{records / seconds:,.0f} records/s"
        yield f"{result['cpu'] / records * 1e6:.2f} CPU s per million"
        yield f"first after {result['first']:.2f} s"
    if "p50" in result:
        yield f"p50 {result['p50'] * 1000:.2f} ms, p99 {result['p99'] * 1000:.2f} ms"
    if result.get("unacknowledged"):
        yield f"{result['unacknowledged']} not acknowledged"
