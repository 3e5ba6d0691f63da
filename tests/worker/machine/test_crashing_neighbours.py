"""Records that end their process take no others with them: lives of a group's workers.

The machines are real; a list is the broker, and a supervisor starts each worker again.
"""

import heapq
import itertools
import random
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import pytest

from sharecons._record import Headers
from sharecons.worker.machine.actions import Copy
from sharecons.worker.machine.item import Call
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.topic_settings import TopicSettings
from sharecons.worker.machine.worker_machine import WorkerMachine
from sharecons.worker.origins import failed_origin
from sharecons.worker.outcomes import DeadLettered, Moved
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopic, RetryTopics, retry_headers
from tests.worker.machine.simulated_worker import FakeRecord

RECORDS: Final = 120
CONCURRENCY: Final = 10
KEYS: Final = 4
LIMIT: Final = 5
"""Deliveries."""

TICK: Final = 0.01

Plan = Callable[[int], str]


class Delivery(NamedTuple):
    """The next delivery of a record; `headers` of its copy in the retry topic."""

    offset: int
    count: int = 1
    headers: Headers = ()


class Process:
    """The machine of one process, its calls, and what it tried before."""

    def __init__(self, settings: HandlerSettings) -> None:
        self.machine = WorkerMachine(
            TopicSettings({"orders": settings}, "billing"),
            concurrency=CONCURRENCY,
            max_bytes=1 << 20,
            chance=lambda: 0.5,
        )
        self.calls: list[tuple[float, int, Call]] = []
        self.tried: set[int] = set()


class Group:
    """The workers of a group, and its share-partition.

    A crash ends one delivery of each record that its process holds.

    Args:
        plan: of an offset: "succeed", "fail once" (in each process) or "crash".
        settings: of the handler.

    Attributes:
        handled: the offsets that were processed.
        letters: the reasons of dead letters, by offset.
        crashes: how many processes have ended.
        now: seconds.
    """

    def __init__(
        self, plan: Plan, seed: int, *, processes: int = 1, **settings: Any
    ) -> None:
        self._plan = plan
        self._chance = random.Random(seed)
        self._numbers = itertools.count()
        self._settings = HandlerSettings(dead_letter="dead", **settings)
        self._processes = [Process(self._settings) for _ in range(processes)]
        self._available = [Delivery(offset) for offset in range(RECORDS)]
        self.handled: set[int] = set()
        self.letters: dict[int, str] = {}
        self.crashes = 0
        self.now = 0.0

    def run(self) -> None:
        """Run until no record is left."""
        while self._available or any(
            each.machine.scheduler.held_count for each in self._processes
        ):
            self._step()

    def _step(self) -> None:
        """Let each process take records and start calls; then end a call."""
        for process in self._processes:
            machine = process.machine
            scheduler = machine.scheduler
            self._execute(machine.on_time(scheduler.waiting, self.now))
            if not scheduler.isolation.is_active:
                self._take(machine)
            while (call := machine.next_call(self.now)) is not None:
                self._execute(machine.on_call_begins(call, self.now))
                end = self.now + self._chance.uniform(TICK, 0.1)
                heapq.heappush(process.calls, (end, next(self._numbers), call))
        first = min(self._processes, key=lambda each: each.calls[:1] or [(1e9,)])
        if not first.calls:
            due = min(each.machine.next_due() for each in self._processes)
            self.now = max(self.now + TICK, min(due, self.now + 1.0))
            return
        self.now, _, call = heapq.heappop(first.calls)
        self._end(first, call)

    def _take(self, machine: WorkerMachine) -> None:
        scheduler = machine.scheduler
        capacity = scheduler.queues[0].capacity(self.now)
        count = min(capacity, scheduler.isolation.max_taken)
        taken, self._available = self._available[:count], self._available[count:]
        records = [
            FakeRecord(
                each.offset,
                topic="later" if each.headers else "orders",
                key=b"%d" % (each.offset % KEYS),
                delivery_count=each.count,
                headers=each.headers,
                lock_deadline=self.now + 3600.0,
            )
            for each in taken
        ]
        items = machine.new_items(records, self.now, self.now)
        self._execute(machine.on_taken(items, self.now))

    def _end(self, process: Process, call: Call) -> None:
        errors: list[Exception | None] = []
        for item in call.items:
            offset = item.record.offset
            plan = self._plan(offset)
            if plan == "crash":
                self._crash(process)
                return
            if plan == "fail once" and offset not in process.tried:
                process.tried.add(offset)
                errors.append(TimeoutError("fails once"))
            else:
                errors.append(None)
                self.handled.add(offset)
        machine = process.machine
        actions = machine.on_results(call, errors, self.now, 0.05)
        self._execute(actions)
        machine.on_call_ended(call)

    def _crash(self, process: Process) -> None:
        self.crashes += 1
        records = [item.record for item in process.machine.scheduler.held]
        returned = [
            Delivery(each.offset, each.delivery_count + 1, each.headers)
            for each in records
        ]
        assert all(each.count <= LIMIT for each in returned), "it is archived"
        self._available = sorted([*returned, *self._available])
        self._processes.remove(process)
        self._processes.append(Process(self._settings))

    def _execute(self, actions: Any) -> None:
        for action in actions:
            if not isinstance(action, Copy):
                continue
            item, outcome = action.item, action.outcome
            if isinstance(outcome, DeadLettered):
                self.letters[item.record.offset] = outcome.reason
            elif isinstance(outcome, Moved):
                self._move(item, outcome)
            for each in self._processes:
                if each.machine.is_current(action):
                    self._execute(each.machine.on_copied(action))

    def _move(self, item: Any, moved: Moved) -> None:
        origin = failed_origin(
            item,
            group="billing",
            attempts=moved.attempt - 1,
            reason="failed",
            error=None,
        )
        due = round(1000 * (self.now + moved.seconds))
        headers = retry_headers(origin, due)
        self._available.append(Delivery(item.record.offset, 1, headers))


CRASHING: Final = frozenset([30, 31, 90])
SHORT: Final = RetryPolicy(max_attempts=100, initial=0.5, maximum=5.0)
LONG: Final = RetryPolicy(max_attempts=100, initial=20.0, maximum=60.0)


def plan_of(crashing: Collection[int], offset: int) -> str:
    if offset in crashing:
        return "crash"
    return "fail once" if offset % 3 == 0 else "succeed"


@pytest.mark.parametrize(
    "settings",
    [
        {"retry": SHORT},
        {"retry": SHORT, "key_order": True},
        {"retry": SHORT, "max_records": 4, "max_wait": 0.05},
        {"retry": LONG, "retry_topics": RetryTopics([RetryTopic("later", 60.0)])},
    ],
    ids=["order of arrival", "key order", "batches", "retry topic"],
)
@pytest.mark.parametrize("seed", range(3))
def test_records_that_fail_beside_crashing_ones_are_processed(
    seed: int, settings: dict[str, Any]
) -> None:
    group = Group(lambda offset: plan_of(CRASHING, offset), seed, **settings)

    group.run()

    assert CRASHING == group.letters.keys()
    assert set(range(RECORDS)) - CRASHING == group.handled
    assert 4 * len(CRASHING) >= group.crashes


@pytest.mark.parametrize("retry", [SHORT, LONG], ids=["short waits", "retry topic"])
@pytest.mark.parametrize("seed", range(3))
def test_records_that_many_processes_had_beside_a_crashing_one_are_processed(
    seed: int, retry: RetryPolicy
) -> None:
    """The others take all that a process held, and crash with it."""
    topics = RetryTopics([RetryTopic("later", 60.0)] if retry is LONG else [])
    group = Group(
        lambda offset: plan_of([100], offset),
        seed,
        processes=4,
        retry=retry,
        retry_topics=topics,
    )

    group.run()

    assert {100} == group.letters.keys()
    assert RECORDS - 1 == len(group.handled)
