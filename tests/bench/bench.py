"""One run: a Kafka, its topics, and what is done with each client alike."""

import argparse
import asyncio
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

from kio.schema.describe_share_group_offsets.v1 import request as description
from kio.schema.describe_share_group_offsets.v1.response import (
    DescribeShareGroupOffsetsResponse,
)

from sharecons.testing.kafka import KafkaCluster
from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.clients.connection import Connection
from tests.bench.results import Results
from tests.bench.roster import CLIENTS, MissingError, Roster, candidates
from tests.bench.running import FailedError, finished, measured, started
from tests.kafka_plugin import Admin

__all__ = ["Bench"]

EARLIEST: Final = {"share.auto.offset.reset": "earliest"}
REHEARSAL: Final = -1  # a round
WARM_UPS: Final = 3
PATIENCE: Final = 120.0  # seconds for a client to read what it is to read
GRACE: Final = 60.0  # and to join, close, and for Java to start
ANSWER: Final = 10.0  # for one answer of the broker's

log = logging.getLogger("tests.bench")


class Bench:
    """What the measurements work with."""

    def __init__(
        self,
        options: argparse.Namespace,
        cluster: KafkaCluster,
        guard: CleanupProcess,
        scratch: Path,
        results: Results,
    ) -> None:
        self.options = options
        self.results = results
        self._cluster = cluster
        self._bootstrap = cluster.bootstrap_servers
        self._guard = guard
        self._admin = Admin(self._bootstrap)
        self._roster = Roster(scratch, options.kafka_version)
        self._missing: set[str] = set()

    def turns(
        self, what: str, *, rounds: int | None = None, rehearsed: bool = False
    ) -> Iterator[tuple[int, str]]:
        """Give (round, client) in the order of the run.

        Each round begins further on in the list, so that nobody always goes first. A
        rehearsal comes before, whose results are not kept: the broker's first answers
        of a kind are slow ones, and each client's are of another.
        """
        names = [
            name for name in candidates(what, self.options.clients) if self._has(name)
        ]
        if rehearsed:
            yield from ((REHEARSAL, name) for name in names)
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
    def loaded(
        self, partitions: int, records: int, size: int = 100, codec: str = "none"
    ) -> Iterator[str]:
        """Give a topic with so many records, evenly over its partitions."""
        with self.topic(partitions) as name:
            if records > 1:
                what = f"{records:,} records of {size:,} bytes, {codec}"
                log.info("loading %s, partitions: %d", what, partitions)
            command = self._module(
                "loading",
                topic=name,
                partitions=partitions,
                records=records,
                size=size,
                codec=codec,
                batch_size=self.options.batch_size,
                linger=self.options.linger,
            )
            finished(command, self._guard, PATIENCE)
            os.sync()  # writing it out later would disturb who is measured
            yield name

    @contextmanager
    def paced(self, topic: str, rate: float) -> Iterator[None]:
        """Produce at this rate for as long as the block lasts."""
        command = self._module("paced", topic=topic, rate=rate, seconds=PATIENCE)
        with started(command, self._guard):
            yield

    def stored(self, topic: str) -> int:
        """Give the bytes of the topic's segments."""
        data = self._cluster.log_directory(1)
        return sum(path.stat().st_size for path in data.glob(f"{topic}-*/*.log"))

    def measure(
        self,
        what: str,
        turn: tuple[int, str],
        topic: str,
        *,
        labels: Mapping[str, Any] | None = None,
        program: Mapping[str, Any],
        kept: Mapping[str, Any] | None = None,
        patience: float = PATIENCE,
        watch: Callable[[Popen[str]], None] = lambda _: None,
    ) -> None:
        """Run a client once, with a group of its own, and keep what it measured.

        Args:
            labels: under what it was measured, kept with it.
            program: arguments of the client's program.
            kept: what is to be kept too; `watch` may still be filling it.
            watch: sees the process until it ends.
        """
        round_, name = turn
        about = {"what": what, "client": name, "round": round_, **(labels or {})}
        load = round(os.getloadavg()[0], 2)  # what the machine was busy with before
        group = f"{name}-{uuid.uuid4().hex[:8]}"
        self._admin.set_group_config(group, EARLIEST)
        command = [
            *self._roster.command(name),
            *self._spelt(topic=topic, group=group, patience=patience),
            *self._spelt(max_records=self.options.max_records, **program),
        ]
        try:
            result = measured(finished(command, self._guard, patience + GRACE, watch))
            if "wanted" in (kept or {}):
                result["unacknowledged"] = self._unacknowledged(group)
        except FailedError as error:
            result = {"error": str(error)}
        if round_ == REHEARSAL:
            return
        log.info("%s: %s", _spelt_out(about), ", ".join(_figures(result)))
        self.results.keep({**about, "load": load, **result, **(kept or {})})

    def read(
        self,
        what: str,
        turn: tuple[int, str],
        topic: str,
        records: int,
        *,
        consumers: int = 1,
        labels: Mapping[str, Any] | None = None,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        """Have a client read so many records, which are all that the topic has."""
        self.measure(
            what,
            turn,
            topic,
            program={"records": records, "consumers": consumers},
            labels=labels,
            kept={"wanted": records, **(kept or {})},
        )

    def warm_up(self) -> None:
        """Have the broker make its own topics, and compile what it runs.

        Compiling goes on for most of a minute of load, and takes a core from whoever is
        measured meanwhile: who has more to do himself loses more by it.
        """
        log.info("warming up the broker")
        records = self.options.records
        end = time.monotonic() + self.options.settle
        with self.loaded(self.options.partitions, records) as topic:
            for turn in itertools.count(1):
                group = f"warm-up-{turn}"
                self._admin.set_group_config(group, EARLIEST)
                where = self._spelt(topic=topic, group=group, records=records)
                command = [*self._roster.command("raw"), *where]
                finished(command, self._guard, PATIENCE + GRACE)
                if turn >= WARM_UPS and time.monotonic() >= end:
                    break

    def _has(self, name: str) -> bool:
        try:
            self._roster.command(name)
        except MissingError as error:
            if name not in self._missing:
                self._missing.add(name)
                log.info("%s is left out: %s", CLIENTS[name].title, error)
                self.results.keep(
                    {"what": "missing", "client": name, "why": str(error)}
                )
            return False
        return True

    def _module(self, name: str, **arguments: Any) -> list[str]:
        return [sys.executable, "-m", f"tests.bench.{name}", *self._spelt(**arguments)]

    def _spelt(self, **arguments: Any) -> list[str]:
        words = ["--bootstrap", self._bootstrap]
        for name, value in arguments.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return words

    def _unacknowledged(self, group: str) -> int | None:
        """Give how many records of its topic a group has still to do; None if unknown.

        From Kafka 4.2 on. (The start offset would not do: it trails behind.)
        """
        try:
            return asyncio.run(_lag(self._bootstrap, group))
        except (OSError, TimeoutError, RuntimeError):
            return None


async def _lag(bootstrap: str, group: str) -> int:
    asked: Any = description.DescribeShareGroupOffsetsRequestGroup(
        group_id=group,  # type: ignore[arg-type]
        topics=None,
    )
    request = description.DescribeShareGroupOffsetsRequest(groups=(asked,))
    async with asyncio.timeout(ANSWER):
        connection = await Connection.open(bootstrap)
        try:
            answer = await connection.ask(request, DescribeShareGroupOffsetsResponse)
        finally:
            connection.close()
    (found,) = answer.groups
    if found.error_code:
        raise RuntimeError(f"the group's offsets were refused: {found.error_code.name}")
    lags = [part.lag for topic in found.topics for part in topic.partitions]
    if not lags or min(lags) < 0:
        raise RuntimeError("the broker does not know yet")
    return sum(lags)


def _spelt_out(about: Mapping[str, Any]) -> str:
    """Spell what is measured for whoever looks on."""
    named = ("what", "client", "round")
    under = [f"{name}={value}" for name, value in about.items() if name not in named]
    where = " ".join([about["what"], *under, f"round {about['round'] + 1}"])
    return f"{where}, {about['client']}"


def _figures(result: Mapping[str, Any]) -> Iterator[str]:
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
