"""Tasks that end their process, and the tasks beside them, in virtual time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from sharecons.net.io.transport import FrameTransport
from sharecons.protocol.partitions import Endpoint
from sharecons.taskiq import KEY_LABEL
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.pytest_plugin import SETTINGS
from tests.scenarios.interrupted_network import InterruptedNetwork
from tests.taskiq.running import make_broker, receiving
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("six processes, one after the other"),
]

SUSPECT_AFTER = 2
LIMIT = 5
"""The deliveries of a group by default."""


@pytest.fixture
def anyio_backend() -> virtual_time.Backend:
    """taskiq runs on asyncio only."""
    return virtual_time.backend("asyncio")


class EndedNetwork(InterruptedNetwork):
    """A network whose connections end with their process; no other one begins."""

    has_ended = False

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        if self.has_ended:
            raise ConnectionRefusedError("the process has ended")
        return await super().connect(endpoint)


class Processes:
    """Worker processes, one after the other, in this event loop.

    Attributes:
        calls: the tasks that have begun.
        ended: the tasks that have returned.
        beside: how many other tasks ran at each call of "crash".
    """

    def __init__(self, kafka: EmbeddedBroker) -> None:
        self.calls: Counter[int] = Counter()
        self.ended: set[int] = set()
        self.beside: list[int] = []
        self._kafka = kafka
        self._running = 0

    async def send(self, *tasks: tuple[str, dict[str, object]]) -> None:
        """Send tasks with the numbers from 0: a name and labels of each."""
        broker = make_broker(self._kafka)
        await broker.startup()
        for number, (name, labels) in enumerate(tasks):

            @broker.task(task_name=name)
            async def task(number: int) -> None: ...

            await task.kicker().with_labels(**labels).kiq(number)
        await broker.shutdown()

    async def run(self) -> bool:
        """Run a process until a task ends it, or until all is settled.

        Return whether a task has ended it.
        """
        async with self._process() as crashed:

            def has_ended() -> bool:
                return crashed.is_set() or self._is_settled()

            await until(has_ended, 100.0, pause=0.1)
        return crashed.is_set()

    def _is_settled(self) -> bool:
        with suppress(LookupError):  # the group does not exist yet
            partitions = self._kafka.group("workers").partitions
            done = sum(each.start_offset or 0 for each in partitions)
            return done == len(self._kafka.records("tasks"))
        return False

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[asyncio.Event]:
        network = EndedNetwork(self._kafka.network)
        broker = make_broker(self._kafka, network=network)
        crashed = asyncio.Event()
        self._running = 0

        @broker.task(task_name="work")
        async def work(number: int) -> None:
            self.calls[number] += 1
            self._running += 1
            await asyncio.sleep(2.0)  # in virtual time
            self._running -= 1
            self.ended.add(number)

        @broker.task(task_name="crash")
        async def crash(number: int) -> None:
            self.calls[number] += 1
            self.beside.append(self._running)
            network.has_ended = True
            await network.cut()
            crashed.set()
            await asyncio.Event().wait()

        async with receiving(broker, wait_tasks_timeout=0.1):
            yield crashed
            if crashed.is_set():
                for task in asyncio.all_tasks():
                    if getattr(task.get_coro(), "__name__", "") == "callback":
                        task.cancel()


@pytest.fixture
def processes(kafka: EmbeddedBroker) -> Processes:
    return Processes(kafka)


WORK: tuple[str, dict[str, object]] = ("work", {})
CRASH: tuple[str, dict[str, object]] = ("crash", {})


async def test_task_that_ends_its_process_takes_no_other_with_it(
    processes, caplog
) -> None:
    await processes.send(*[WORK] * 4, CRASH, *[WORK] * 3)

    while await processes.run():
        pass

    assert processes.ended == set(range(8)) - {4}
    assert processes.calls[4] == LIMIT
    assert [0] * (LIMIT - SUSPECT_AFTER) == processes.beside[SUSPECT_AFTER:]
    lines = [line for line in caplog.text.splitlines() if "runs alone" in line]
    assert any("offset=4" in each and "delivery_count=5" in each for each in lines)


async def test_delayed_task_survives_tasks_that_end_its_process(processes) -> None:
    later: tuple[str, dict[str, object]] = ("work", {"delay": 20})
    await processes.send(later, CRASH, later)

    while await processes.run():
        pass

    assert processes.ended == {0, 2}
    assert processes.calls == {0: 1, 1: LIMIT, 2: 1}


@pytest.mark.parametrize("crashing", range(3))
async def test_task_that_ends_its_process_takes_none_of_other_brokers_with_it(
    crashing,
) -> None:
    async with EmbeddedBroker(brokers=3, settings=SETTINGS, listen=False) as kafka:
        kafka.create_topic("tasks", partitions=3)
        processes = Processes(kafka)
        await processes.send(
            *[
                ("crash" if number == crashing else "work", {KEY_LABEL: key})
                for number, key in enumerate("abcdef")
            ]
        )

        while await processes.run():
            pass

    assert processes.ended == set(range(6)) - {crashing}
