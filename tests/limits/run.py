"""One scene: members join, are idle, have a load; tools; a newcomer; all leave."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.limits.broker import Broker, running_broker
from tests.limits.figures import Figure
from tests.limits.load import Load, write_each
from tests.limits.members import Event, Members, running_members
from tests.limits.scenes import Scene, Seat
from tests.limits.tools import DEAD_LETTERS, Tools

__all__ = ["WARM_UP", "run_scene", "warm_up"]

WARM_UP: Final = "warm-up"
"""A topic, and its only group."""

PER_PROCESS: Final = 25
"""Members of one process."""

RECORDS: Final = 5.0
"""Records per second that each member receives under load."""

REST: Final = 4.0
"""Seconds of an empty broker, and before members count as idle."""

WINDOW: Final = 10.0
"""Seconds of a measurement."""

MOVED: Final = 12.0
"""Seconds after which a newcomer has its partitions, twice the heartbeat interval."""

ORIGIN: Final = (
    ("sharecons.origin.topic", b"topic-0"),
    ("sharecons.origin.partition", b"0"),
    ("sharecons.origin.offset", b"0"),
    ("sharecons.origin.group", b"group-0"),
    ("sharecons.origin.delivery-count", b"5"),
    ("sharecons.reason", b"a test of sizes"),
)

log = logging.getLogger(__name__)


def run_scene(
    scene: Scene, cleanup: CleanupProcess, scratch: Path, *, with_tools: bool
) -> list[Figure]:
    """Run a scene on a broker of its own; return its figures."""
    with running_broker() as broker:
        broker.create_topics({**scene.topics, DEAD_LETTERS: 1, WARM_UP: 1})
        warm_up(broker, cleanup)
        letters = [(DEAD_LETTERS, 0)] * sum(scene.topics.values())
        write_each(broker.direct, letters, ORIGIN)
        return list(_Run(scene, broker, cleanup).figures(scratch, with_tools))


def warm_up(broker: Broker, cleanup: CleanupProcess) -> None:
    """Let a group read a record, so that the broker creates its internal topics."""
    seats, address = [Seat(WARM_UP, (WARM_UP,))], broker.addresses["MEMBERS"]
    with running_members(address, seats, 1, cleanup) as members:
        with Load(broker.direct, [(WARM_UP, 0)], RECORDS):
            members.wait(lambda: bool(members.of("joined")), "first record")


class _Run:
    def __init__(self, scene: Scene, broker: Broker, cleanup: CleanupProcess) -> None:
        self._scene = scene
        self._broker = broker
        self._cleanup = cleanup
        self._rest = 0.0
        self._places = scene.partitions

    def figures(self, scratch: Path, with_tools: bool) -> Iterator[Figure]:
        self._rest = self._broker.cpu_at_rest(REST)
        with self._members(len(self._scene.seats)) as members:
            with self._load():
                yield from self._joined(members)
            self._use_all_partitions(members)
            log.info("  idle")
            yield from self._window("idle", members)
            yield from self._memory(members)
            log.info("  load")
            with self._load():
                time.sleep(1.0)
                yield from self._window("load", members)
            if with_tools:
                log.info("  tools")
                address = self._broker.addresses["TOOLS"]
                traffic = self._broker.traffic["TOOLS"]
                tools = Tools(address, traffic, self._cleanup, scratch)
                yield from tools.measure(self._scene)
            log.info("  newcomer")
            yield from self._newcomer(members)
        members.join()
        seconds = [event["seconds"] for event in members.of("left")]
        yield Figure("all leave together", "s", max(seconds), detail="last")

    @contextmanager
    def _members(self, count: int) -> Iterator[Members]:
        address = self._broker.addresses["MEMBERS"]
        seats = self._scene.seats[:count]
        with running_members(address, seats, PER_PROCESS, self._cleanup) as members:
            yield members

    def _load(self) -> Load:
        """Return a load in which each member receives RECORDS per second."""
        readers = sum(len(seat.topics) for seat in self._scene.seats)
        groups_of_topic = readers / len(self._scene.topics) / self._members_of_group()
        rate = RECORDS * len(self._scene.seats) / groups_of_topic
        return Load(self._broker.direct, self._places, rate)

    def _members_of_group(self) -> float:
        return len(self._scene.seats) / len(self._scene.groups)

    def _joined(self, members: Members) -> Iterator[Figure]:
        count = len(self._scene.seats)
        members.wait(lambda: len(members.of("joined")) == count, "first records")
        seconds = [event["seconds"] for event in members.of("joined")]
        yield Figure(
            "join until the first record", "s", median(seconds), detail="median"
        )
        yield Figure("join until the first record", "s", max(seconds), detail="last")

    def _use_all_partitions(self, members: Members) -> None:
        """Have each partition read, so that all have a state, and wait for rest."""
        write_each(self._broker.direct, self._places)
        received = -1
        while received != (received := members.received()):
            time.sleep(1.0)
        time.sleep(REST)

    def _window(self, name: str, members: Members) -> Iterator[Figure]:
        """Yield the requests, bytes and CPU of a window."""
        traffic = self._broker.traffic["MEMBERS"]
        before, began = traffic.copy(), time.monotonic()
        cpu, broker_cpu = members.usage()[0], self._broker.usage()[0]
        time.sleep(WINDOW)
        passed, seconds = traffic.since(before), time.monotonic() - began
        for api, count in sorted(passed.requests.items()):
            yield Figure(name, "requests/s", count / seconds, detail=api)
        yield Figure(name, "requests/s", passed.total / seconds, detail="all")
        yield Figure(name, "kB/s", passed.kilobytes / seconds)
        used = (members.usage()[0] - cpu) / seconds
        yield Figure(name, "CPU ms/s", used * 1000, detail="members")
        used = (self._broker.usage()[0] - broker_cpu) / seconds - self._rest
        yield Figure(
            name, "CPU ms/s", max(0.0, used) * 1000, is_broker=True, detail="broker"
        )

    def _memory(self, members: Members) -> Iterator[Figure]:
        used = members.usage()[1] - members.base
        yield Figure("memory", "MiB", used, detail="members, above Python's")
        memory = self._broker.usage()[1]
        yield Figure("memory", "MiB", memory, is_broker=True, detail="broker")

    def _newcomer(self, members: Members) -> Iterator[Figure]:
        """Let a further member join the first group, and leave."""
        held = Held(self._scene, members)
        members.send("watch")
        members.wait(held.all, "assignments")
        with self._load(), self._members(1) as newcomer:
            newcomer.wait(lambda: bool(newcomer.of("joined")), "record of a newcomer")
            (joined,) = newcomer.of("joined")
            yield Figure(
                "newcomer joins until the first record", "s", joined["seconds"]
            )
            _until(lambda: not held.all(), MOVED)
            left = time.monotonic()
            newcomer.leave(0)
            newcomer.wait(lambda: bool(newcomer.of("left")), "leave")
            yield Figure("newcomer leaves", "s", newcomer.of("left")[0]["seconds"])
            members.wait(held.all, "assignment after a leave")
            yield Figure(
                "others have its partitions", "s", max(0.0, held.changed - left)
            )
        members.send("unwatch")


class Held:
    """The partitions that the members of the first group have, by their events."""

    def __init__(self, scene: Scene, members: Members) -> None:
        self._members = members
        first = scene.newcomer
        self._wanted = {
            f"{topic}:{number}"
            for topic in first.topics
            for number in range(scene.topics[topic])
        }
        self._numbers = {
            number
            for number, seat in enumerate(scene.seats)
            if seat.group == first.group
        }

    @property
    def changed(self) -> float:
        """The time of the latest change."""
        return max(event["at"] for event in self._latest().values())

    def all(self) -> bool:
        """Return whether each partition has a member."""
        held = (event["partitions"] for event in self._latest().values())
        return self._wanted <= {place for each in held for place in each}

    def _latest(self) -> dict[int, Event]:
        events = self._members.of("assignment")
        return {e["member"]: e for e in events if e["member"] in self._numbers}


def _until(is_done: Callable[[], bool], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not is_done() and time.monotonic() < deadline:
        time.sleep(0.05)
