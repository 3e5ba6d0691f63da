"""Workers that are cancelled at random lose nothing and accept nothing early."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from sharecons import (
    AcknowledgeResult,
    Attempt,
    CallNext,
    DeadLetter,
    DeadLetterQueue,
    Record,
    Retry,
    RetryPolicy,
    RetryTopic,
)
from sharecons.copies.dead_letter_headers import read_origin
from sharecons.worker.machine import window
from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue, unsettled
from tests.scenarios.record_plans import NEVER_DONE, plan_of
from tests.scenarios.share_workers import (
    Position,
    all_records,
    wait_until_settled,
)
from tests.scenarios.versions import since_4_2
from tests.waiting import until

pytestmark = [pytest.mark.anyio, since_4_2]

DELIVERY_LIMIT = 10
ROUNDS = 6
"""Cancelled runs of one queue. Each run delivers a record at most twice: the record
and, if it is moved, its copy."""

RECORDS = 40
DELAY = 0.3
WINDOW = 8
"""The number of records that can wait behind another one; further ones are moved."""

attempt_of_handler: ContextVar[int] = ContextVar("attempt_of_handler")


async def show_attempt(attempt: Attempt[Any, Any], call_next: CallNext) -> None:
    """Show the handler the number of its attempt."""
    attempt_of_handler.set(attempt.number)
    await call_next()


class Queues:
    """A source topic, a retry topic and a dead-letter topic of one group."""

    def __init__(self, admin: Admin) -> None:
        config = {
            "share.delivery.count.limit": str(DELIVERY_LIMIT),
            # A member that is cancelled as it joins or leaves ends by its timeout.
            "share.session.timeout.ms": "6000",
            "share.heartbeat.interval.ms": "2000",
        }
        self.source = Queue(admin, partitions=2, **config)
        self.retries = admin.create_topic(partitions=1)
        self.dead_letters = admin.create_topic()
        self.produced = 0

    def produce(self, count: int) -> None:
        for partition in (0, 1):
            first = self.produced + partition
            mine = range(first, self.produced + count, 2)
            self.source.produce(
                [b"%d" % number for number in mine], partition=partition
            )
        self.produced += count

    async def left(self) -> list[Record[Any, Any]]:
        """Return the records of both topics that the group delivers to a new member."""
        source = self.source
        topics = (source.topic, self.retries)
        return await unsettled(source.admin, source.group, *topics)

    async def wait_until_settled(self) -> None:
        partitions = {self.source.topic: 2, self.retries: 1}
        await wait_until_settled(self.source.admin, self.source.group, partitions)


class Journal:
    """The calls and results of the handlers of all runs, by the origin of the record.

    Attributes:
        finished: records whose handler returned.
        failed: records whose handler raised.
        early: records that were accepted before their handler returned or raised.
        deliveries: the delivery counts with which a record of a topic was handled.
        numbers: the number of each record that was handled.
        counts: the sums of all workers' `stats`, and how many handlers were cancelled.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.finished: set[Position] = set()
        self.failed: set[Position] = set()
        self.early: list[Position] = []
        self.deliveries: defaultdict[Position, list[int]] = defaultdict(list)
        self.numbers: dict[Position, int] = {}
        self._ended: set[Position] = set()

    def on_delivered(self, record: Record[Any, Any]) -> None:
        self.deliveries[position(record)].append(record.delivery_count)

    def on_ended(self, record: Record[Any, Any], origin: Position, error: Any) -> None:
        self._ended.add(position(record))
        self.numbers[origin] = int(record.value)
        (self.finished if error is None else self.failed).add(origin)

    def on_acknowledged(self, results: Sequence[AcknowledgeResult]) -> None:
        for each in results:
            if each.type.name != "ACCEPT":
                continue
            for offset in range(each.first_offset, each.last_offset + 1):
                where = Position(each.topic, each.partition, offset)
                if where not in self._ended:
                    self.early.append(where)


def position(record: Any) -> Position:
    return Position(record.topic, record.partition, record.offset)


class Run:
    """One run of a worker."""

    def __init__(self, queues: Queues, journal: Journal) -> None:
        self._journal = journal
        self.worker = queues.source.worker(
            self._handle,
            on_acknowledged=journal.on_acknowledged,
            concurrency=8,
            # Cancelled deliveries count as attempts: they give up no record here.
            retry=RetryPolicy(
                max_attempts=DELIVERY_LIMIT,
                initial=0.02,
                maximum=0.1,
                by_exception={ValueError: RetryPolicy(max_attempts=3)},
            ),
            retry_topics=[RetryTopic(queues.retries, DELAY)],
            dead_letter=DeadLetterQueue(queues.dead_letters),
            middleware=[show_attempt],
        )
        self.handling = anyio.Event()

    async def live(self) -> None:
        try:
            await self.worker.run()
        finally:
            self._journal.counts.update(self.worker.stats._asdict())

    async def _handle(self, record: Record[Any, Any]) -> None:
        self.handling.set()
        self._journal.on_delivered(record)
        origin = Position(*self.worker.origin(record)[:3])
        try:
            # real time: the handler's work
            await anyio.sleep(random.choice([0.0, 0.001, 0.03]))
        except anyio.get_cancelled_exc_class():
            self._journal.counts["cancelled"] += 1
            raise
        error = failure(int(record.value))
        # No await follows, so the worker receives the result in the journal.
        self._journal.on_ended(record, origin, error)
        if error is not None:
            raise error


def failure(number: int) -> Exception | None:
    """Return the exception that the handler of a record raises at this attempt."""
    first = attempt_of_handler.get() == 1
    match plan_of(number):
        case "fail once" if first:
            return TimeoutError("first attempt")
        case "wait" if first:
            return Retry(after=DELAY)
        case "fail":
            return ValueError("each attempt")
        case "dead letter":
            return DeadLetter("planned")
        case _:
            return None


async def run_and_cancel(run: Run, chance: random.Random) -> None:
    """Cancel a run after a random number of steps of the event loop, or random time."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.live)
        if chance.random() < 0.9:  # otherwise it is cancelled while it joins
            with anyio.fail_after(30):
                await run.handling.wait()
        if chance.random() < 0.5:
            for _ in range(chance.randrange(1000)):
                await anyio.lowlevel.checkpoint()
        else:
            # real time: random, and long enough for retries
            await anyio.sleep(chance.uniform(0.0, 1.5 * DELAY))
        tasks.cancel_scope.cancel()


async def run_until_done(run: Run, journal: Journal, queues: Queues) -> None:
    """Run until every record is handled or a dead letter."""

    def is_done() -> bool:
        handled = len({journal.numbers[each] for each in journal.finished})
        never = sum(plan_of(n) in NEVER_DONE for n in range(queues.produced))
        return handled == queues.produced - never and run.worker.stats.held == 0

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.live)
        await until(is_done, within=60)
        await queues.wait_until_settled()
        run.worker.stop()


async def check_ends(journal: Journal, queues: Queues) -> None:
    assert [] == journal.early
    assert [] == await queues.left()
    letters = await all_records(queues.source.admin, queues.dead_letters)
    dead: dict[Position, int] = {}
    for letter in letters:
        origin = read_origin(letter.headers)
        assert origin is not None
        dead[Position(*origin[:3])] = int(letter.value)
    done = {journal.numbers[each] for each in journal.finished}
    never = {n for n in range(queues.produced) if plan_of(n) in NEVER_DONE}
    assert {*range(queues.produced)} - never == done
    assert never == {*dead.values()}
    assert {each.topic for each in dead} == {queues.source.topic}
    assert {*dead} | journal.finished == {*journal.numbers}
    counts = journal.deliveries.values()
    assert max(max(each) for each in counts) < DELIVERY_LIMIT, (
        "a record was perhaps archived"
    )
    for each in counts:
        # Attempts in one delivery have the same count, the next delivery a higher one.
        assert sorted(each) == each


@pytest.fixture
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "USABLE", WINDOW / window.DEFAULT_WINDOW)


async def cancel_at_random(admin: Admin, seed: int, rounds: int) -> Journal:
    chance = random.Random(seed)
    queues, journal = Queues(admin), Journal()
    for _ in range(rounds):
        queues.produce(RECORDS)
        await run_and_cancel(Run(queues, journal), chance)
    assert journal.counts["accepted"] > 0 < journal.counts["released"]
    await run_until_done(Run(queues, journal), journal, queues)
    await check_ends(journal, queues)
    return journal


@pytest.mark.parametrize("seed", range(2))
async def test_worker_cancelled_at_random_loses_nothing(
    admin: Admin, small_window: None, seed: int
) -> None:
    await cancel_at_random(admin, seed, ROUNDS)


@pytest.mark.thorough
@pytest.mark.slow("a hundred runs")
@pytest.mark.timeout(900)
async def test_worker_cancelled_at_random_a_hundred_times_loses_nothing(
    admin: Admin, small_window: None
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(100, 117):
        counts.update((await cancel_at_random(admin, seed, ROUNDS)).counts)

    for what in ("accepted", "retried", "moved", "dead_lettered", "cancelled"):
        assert counts[what] > 0, what
