"""The transcripts of docs/stuck.md: each command prints its lines, numbers apart."""

import re
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, NamedTuple

import anyio
import pytest

from sharecons import HealthPolicy, Record, RetryPolicy, ShareConsumer, ShareWorker
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka.settings import TEST_SETTINGS
from tests.cli.run_cli import run_cli
from tests.guides import DOCS
from tests.waiting import until

PAGE: Final = (DOCS / "stuck.md").read_text()
SOON: Final = {"group.share.assignment.interval.ms": "0"}
LOCK: Final = {"share.record.lock.duration.ms": "2000"}
READYZ: Final = "curl HOST:PORT/readyz"

Worker = ShareWorker[Any, Any]
State = AbstractAsyncContextManager[Worker | None]


class Transcript(NamedTuple):
    """A command of a section of the page, and some lines that it prints."""

    section: str
    command: str
    lines: tuple[str, ...]


def transcripts() -> list[Transcript]:
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        for block in re.findall(r"(?:^ {4,7}[^\s`].*\n)+", section, re.MULTILINE):
            for part in re.split(r"^ +\$ ", block, flags=re.MULTILINE)[1:]:
                command, *lines = part.splitlines()
                printed = tuple(map(plain, lines))
                found.append(Transcript(section.splitlines()[0], command, printed))
    return found


def plain(line: str) -> str:
    """Return a line without its numbers, ids, durations and widths of columns."""
    text = re.sub(r"\b[\w-]{22}\b", "ID", line)
    text = re.sub(r"\d+(?:[.,:T-]\d+)*Z?", "#", text)
    text = re.sub(r"# min # s|# min|# ms", "# s", text)
    return " ".join(text.replace("/#", "#").split())


def consumer(broker: EmbeddedBroker, **options: Any) -> ShareConsumer[Any, Any]:
    return ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        acknowledgement="explicit",
        **options,
    )


@asynccontextmanager
async def working(
    broker: EmbeddedBroker, handler: Any, **options: Any
) -> AsyncIterator[Worker]:
    worker: Worker = ShareWorker(
        "orders",
        handler,
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        shutdown_grace=0.0,
        **options,
    )
    async with worker:
        yield worker


@asynccontextmanager
async def without_members(broker: EmbeddedBroker) -> AsyncIterator[None]:
    async with consumer(broker) as member:
        (await member.poll(timeout=10.0))[0].accept()
        await member.commit()
    yield None


@asynccontextmanager
async def held(broker: EmbeddedBroker) -> AsyncIterator[None]:
    """A consumer accepts a record, then renews the others longer than a lock lasts."""
    async with consumer(broker) as member:
        first, *_ = await member.poll(timeout=10.0)
        first.accept()
        await member.commit()
        kept: list[Record[Any, Any]] = []
        end = anyio.current_time() + 3.0
        while anyio.current_time() < end:
            kept += await member.poll(timeout=0.5)
            for each in kept:
                each.renew()
        yield None


@asynccontextmanager
async def with_full_window(broker: EmbeddedBroker) -> AsyncIterator[Worker]:
    window = {"share.partition.max.record.locks": "100"}
    broker.set_group_config("billing", window)
    broker.produce("orders", [b"order"] * 300)

    async def hang_first(record: Record[Any, Any]) -> None:
        if record.offset == 0:
            await anyio.sleep_forever()

    health = HealthPolicy(window_held_after=0.5)
    async with working(broker, hang_first, health=health) as worker:
        await until(lambda: "held-window" in str(worker.not_ready))
        yield worker


@asynccontextmanager
async def released(broker: EmbeddedBroker) -> AsyncIterator[None]:
    async with consumer(broker, acquire_mode="record_limit", max_records=2) as member:
        for _ in range(2):
            for each in await member.poll(timeout=10.0):
                each.release()
            await member.commit()
            member.pause("orders")
            member.resume("orders")
    yield None


@asynccontextmanager
async def with_dead_letter(broker: EmbeddedBroker) -> AsyncIterator[Worker]:
    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("no such customer")

    broker.create_topic("orders.dead")
    once = RetryPolicy(max_attempts=1)
    async with working(broker, fail, retry=once, dead_letter="orders.dead") as worker:
        await until(lambda: worker.stats.dead_lettered)
        yield worker


@asynccontextmanager
async def as_it_starts(broker: EmbeddedBroker) -> AsyncIterator[None]:
    yield None


@asynccontextmanager
async def unassigned(broker: EmbeddedBroker) -> AsyncIterator[None]:
    async with consumer(broker) as member:
        await until(lambda: member.connected)
        yield None


STATES: Final[dict[str, Callable[[EmbeddedBroker], State]]] = {
    "Nothing arrives at all": without_members,
    "It stopped after a while": held,
    "One partition stands, or one record blocks": with_full_window,
    "Records come again and again": released,
    "Dead letters fill up": with_dead_letter,
    "Members join but get no partitions": unassigned,
    "Commands time out": as_it_starts,
}

NEEDS_THREE: Final = {"share.coordinator.state.topic.replication.factor": "3"}


def test_each_transcript_has_a_state() -> None:
    assert set(STATES) == {each.section for each in transcripts()}


@pytest.mark.anyio
@pytest.mark.slow("a lock ends in real time, or a command waits for a broker")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("section", STATES)
async def test_commands_print_the_lines_of_the_page(section: str) -> None:
    unset = NEEDS_THREE if "no partitions" in section else {}
    with EmbeddedBroker(
        topics={"orders": 1}, settings={**TEST_SETTINGS, **SOON, **unset}
    ) as broker:
        earliest = {"share.auto.offset.reset": "earliest", **LOCK}
        broker.set_group_config("billing", earliest)
        broker.produce("orders", [b"order"] * 9)
        async with STATES[section](broker) as worker:
            for each in transcripts():
                if each.section == section:
                    await check(each, broker, worker)


async def check(
    each: Transcript, broker: EmbeddedBroker, worker: Worker | None
) -> None:
    if each.command == READYZ:
        assert worker is not None
        shown = "\n".join(map(str, worker.not_ready))
    else:
        words = shlex.split(each.command)[1:]
        if "--bootstrap-server" not in words:
            words += ["--bootstrap-server", broker.bootstrap_servers]
        result = await anyio.to_thread.run_sync(lambda: run_cli(*words))
        shown = result.out + result.err
    printed = [plain(line) for line in shown.splitlines()]

    assert [line for line in each.lines if line not in printed] == [], shown
