"""A worker process that is killed after it has written a copy, before it accepts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sharecons.copies.dead_letter_headers import read_origin
from sharecons.testing import EmbeddedBroker
from tests.kafka_plugin import EmbeddedCluster, Kafka
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.scenarios.queue import Queue, unsettled
from tests.scenarios.share_workers import (
    Entry,
    Position,
    WorkerProcesses,
    wait_until_settled,
)
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_ASYNCIO, pytest.mark.slow("starts processes")]

FAILS_ONCE_LATER = 4
"""A number whose plan is "wait"."""

NEVER_DONE = 7
"""A number whose plan is "dead letter"."""


class Setup:
    """A worker on the embedded broker, whose acknowledgements can be stalled."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        assert isinstance(kafka.started, EmbeddedCluster)
        self.broker: EmbeddedBroker = kafka.started.broker
        self.queue = Queue(kafka.admin)
        self.retries = kafka.admin.create_topic()
        self.dead_letters = kafka.admin.create_topic()
        self.processes = WorkerProcesses(
            self.queue,
            directory,
            member="the-worker",
            plans=True,
            retry_topic=self.retries,
            dead_letter=self.dead_letters,
            window=1,
        )

    async def kill_before_the_accept(self, topic: str, copies: int) -> None:
        """Start a process, and kill it when a topic has `copies` records."""
        faults = [
            self.broker.faults.on(api, times=None, where=acknowledges).stall()
            for api in ("ShareFetch", "ShareAcknowledge")
        ]
        process = self.processes.start()
        await until(lambda: len(self.broker.records(topic)) >= copies, within=30)
        process.kill()
        process.wait()
        for fault in faults:
            fault.undo()

    async def finish(self, ends: int) -> None:
        process = self.processes.start()
        self.processes.wait_for("end", ends)
        admin, group = self.queue.admin, self.queue.group
        partitions = {self.queue.topic: 1, self.retries: 1}
        await wait_until_settled(admin, group, partitions)
        self.processes.stop(process, within=15)
        assert [] == await unsettled(admin, group, *partitions)

    def starts(self, number: int) -> list[Entry]:
        starts = self.processes.of_kind("start")
        return [entry for entry in starts if entry.number == number]


def acknowledges(request: Any, context: Any) -> bool:
    return any(
        partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    )


@pytest.fixture
def setup(embedded_kafka: Kafka, tmp_path: Path) -> Iterator[Setup]:
    setup = Setup(embedded_kafka, tmp_path)
    yield setup
    setup.processes.kill_all()


async def test_record_moved_and_not_accepted_is_a_recognisable_duplicate(
    setup: Setup,
) -> None:
    setup.queue.produce([b"%d" % FAILS_ONCE_LATER, b"0", b"20", b"40"])
    await setup.kill_before_the_accept(setup.retries, 1)
    await setup.finish(5)

    original = Position(setup.queue.topic, 0, 0)
    assert {entry.origin for entry in setup.starts(FAILS_ONCE_LATER)} == {original}
    again = [entry for entry in setup.starts(FAILS_ONCE_LATER) if entry.run == 1]
    counts = {entry.at.topic: entry.delivery_count for entry in again}
    assert {setup.queue.topic, setup.retries} == counts.keys()
    assert 2 == counts[setup.queue.topic]
    assert counts[setup.retries] in (1, 2), "2 if the killed process had it already"


async def test_dead_letter_written_and_not_accepted_is_a_recognisable_duplicate(
    setup: Setup,
) -> None:
    setup.queue.produce([b"%d" % NEVER_DONE, b"0"])
    await setup.kill_before_the_accept(setup.dead_letters, 1)
    await setup.finish(1)

    origins = [
        read_origin(letter.headers)
        for letter in setup.broker.records(setup.dead_letters)
    ]
    assert [
        (origin.topic, origin.partition, origin.offset, origin.delivery_count)
        for origin in origins
        if origin is not None
    ] == [(setup.queue.topic, 0, 0, 1), (setup.queue.topic, 0, 0, 2)]
