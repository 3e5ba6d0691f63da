"""A week of a consumer, a worker and a producer on three brokers, in virtual time.

These three and an admin client live for the whole week. Twice a day much happens beside
them: topics are deleted and created again, leaders and coordinators move, a broker
stops, connections are cut, members come and go. In between, the members mostly wait. At
noon and midnight everything is settled, and a census is taken.

Requests cost the most CPU (the clock is `virtual_time`): a member that holds records
sends ten fetches per second. So the lock lasts an hour, except where much happens.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from sharecons import (
    DeadLetter,
    DeadLetterQueue,
    Handler,
    OutcomeEvent,
    Producer,
    ProducerRecord,
    Record,
    Reject,
    Retry,
    RetryPolicy,
    RetryTopic,
    ShareConsumer,
    ShareWorker,
)
from sharecons.admin import ShareGroupAdmin
from sharecons.dashboard.live import Live
from sharecons.errors import CorruptRecordsError, LockLostError
from sharecons.group_state.collector import GroupCollector
from sharecons.testing import EmbeddedBroker
from sharecons.worker.outcomes import Accepted, DeadLettered, Rejected
from tests.census import Census, take_census
from tests.waiting import until

__all__ = ["SETTINGS", "Week"]

HOUR: Final = 3600.0
TURN: Final = 12
"""Hours from one busy hour to the next."""

LOCK: Final = HOUR
SHORT_LOCK: Final = 4.0
SLOW: Final = 5.0
"""Seconds: longer than a short lock, so that a worker renews it."""

HEARTBEAT: Final = 300.0
SETTINGS: Final = {
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": str(int(HEARTBEAT * 1000)),
    "group.share.max.heartbeat.interval.ms": str(int(HEARTBEAT * 1000)),
    "group.share.session.timeout.ms": str(int(3 * HEARTBEAT * 1000)),
    "group.share.max.session.timeout.ms": str(int(3 * HEARTBEAT * 1000)),
    "group.share.max.record.lock.duration.ms": str(int(LOCK * 1000)),
    "group.share.max.delivery.count.limit": "25",
    "group.share.partition.max.record.locks": "100",
}
CONFIG: Final = {
    "share.auto.offset.reset": "earliest",
    "share.delivery.count.limit": 25,
}
LOCK_CONFIG: Final = "share.record.lock.duration.ms"

READERS: Final = "readers"
WORKERS: Final = "workers"
GROUPS: Final = (READERS, WORKERS)
TOPICS: Final = {"orders": 1, "payments": 3, "payments.retry": 1, "dead": 1}

QUIET_PLANS: Final = ("succeed", "fail", "reject", "dead letter", "later")
BUSY_PLANS: Final = ("succeed", "slow", "release", "forget", "again", "renew", "reject")
"""Some of these records are held until their handlers or locks end."""

BURST: Final = 90
"""Records behind which a failed one does not fit the window, and moves."""


class FailedError(Exception):
    """A handler has failed, as planned."""


class Ledger:
    """The records that were written, and the groups that have processed them."""

    def __init__(self) -> None:
        self.written = 0
        self.exempt: set[int] = set()
        """Records that were deleted with their topics."""
        self._ended = {group: set[int]() for group in GROUPS}
        self._seen = {group: set[int]() for group in GROUPS}

    def is_first(self, group: str, number: int) -> bool:
        """Return whether a group sees a record for the first time."""
        is_new = number not in self._seen[group]
        self._seen[group].add(number)
        return is_new

    def end(self, group: str, number: int) -> None:
        """Record that a group has processed a record."""
        self._ended[group].add(number)

    def lost(self) -> list[tuple[str, int]]:
        """Return the records that a group has not processed."""
        written = set(range(self.written)) - self.exempt
        return [
            (group, number)
            for group, ended in self._ended.items()
            for number in sorted(written - ended)
        ]


@dataclass
class Week:
    """One week, or the first days of it.

    Attributes:
        censuses: one after each half of a day.
        ledger: written and processed records.
    """

    broker: EmbeddedBroker
    days: int = 7
    censuses: list[Census] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)

    async def run(self) -> None:
        for topic, partitions in TOPICS.items():
            self.broker.create_topic(topic, partitions)
        self._set_lock(LOCK)
        options: Any = self._options()
        self._tasks: TaskGroup
        async with (
            Producer(**options) as self._producer,
            ShareGroupAdmin(**options) as admin,
            anyio.create_task_group() as self._tasks,
            self._consumer(explicit=True) as self._reader,
            self._worker() as self._long_worker,
        ):
            self._collector = GroupCollector(admin)
            self._live = Live(self._collector)
            for hour in range(self.days * 24):
                began = anyio.current_time()
                await self._hour(hour)
                await anyio.sleep_until(began + HOUR)
                if hour % TURN == TURN - 1:
                    await self._until_processed()
                    self.censuses.append(take_census())

    def _options(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.broker.bootstrap_servers,
            "network": self.broker.network,
        }

    # The hours.

    async def _hour(self, hour: int) -> None:
        turn = hour // TURN
        match hour % TURN:
            case 0:
                await self._be_busy(turn)
            case 2:
                await self._visit()
            case 4:
                await self._pause()
            case 6:
                await self._write("orders", len(QUIET_PLANS))
                await self._write("payments", len(QUIET_PLANS))
            case 8 if turn % 2:
                await self._write("payments", BURST, partition=0)
            case 9:
                self._live.open(READERS)
                self._live.update(await self._collector.collect())

    async def _be_busy(self, turn: int) -> None:
        broker = self.broker
        self._set_lock(SHORT_LOCK)
        await self._end_waits()
        await self._write("orders", len(BUSY_PLANS), BUSY_PLANS)
        busiest = turn % TOPICS["payments"]
        await self._write("payments", 2 * len(BUSY_PLANS), BUSY_PLANS, busiest)
        await anyio.sleep(1)
        await self._break()
        node = turn % 3 + 1
        broker.move_leader("payments", busiest, to=node)
        for group in GROUPS:
            broker.move_coordinator(group, to=node)
        broker.stop_broker(node)
        await anyio.sleep(SLOW)
        broker.start_broker(node)
        await self._until_processed()
        await self._recreate(turn)
        self._set_lock(LOCK)
        await self._end_waits()
        await anyio.sleep(HEARTBEAT)
        await self._end_waits()

    def _set_lock(self, seconds: float) -> None:
        for group in GROUPS:
            config = {**CONFIG, LOCK_CONFIG: int(seconds * 1000)}
            self.broker.set_group_config(group, config)

    async def _end_waits(self) -> None:
        """End the waits of fetches, which then wait for as long as the lock allows."""
        for partition in range(TOPICS["payments"]):
            await self._write("payments", 1, ("succeed",), partition)

    async def _write(
        self,
        topic: str,
        count: int,
        plans: tuple[str, ...] = QUIET_PLANS,
        partition: int | None = None,
    ) -> range:
        """Write records with these plans in turn; return their numbers."""
        numbers = range(self.ledger.written, self.ledger.written + count)
        self.ledger.written += count
        await self._producer.send_many(
            ProducerRecord(topic, value, key=b"key-" + value, partition=partition)
            for value in _values(numbers, plans)
        )
        return numbers

    async def _recreate(self, turn: int) -> None:
        """Delete a topic while records of it are held, and create it again."""
        numbers = await self._write("orders", 4, ("slow", "forget"))
        self.ledger.exempt.update(numbers)
        if turn % 4 == 1:
            end = len(self.broker.records("orders", 0))
            self.broker.corrupt_batch("orders", 0, end - 1)
        await anyio.sleep(1)
        self.broker.delete_topic("orders")
        self.broker.create_topic("orders", TOPICS["orders"])
        name = f"replies-{turn}"
        self.broker.create_topic(name)
        self._reader.subscribe("orders", "payments", name)
        await self._producer.send(name, b"-1 succeed")
        if turn:
            self.broker.delete_topic(f"replies-{turn - 1}")

    async def _break(self) -> None:
        """Cut connections, lose responses, fence members, end sessions and locks."""
        faults = self.broker.faults
        faults.on("ShareFetch", times=2).cut()
        faults.on("ShareAcknowledge").lose()
        faults.on("Metadata", times=3).refuse("UNKNOWN_SERVER_ERROR")
        faults.on("ShareGroupHeartbeat", times=2).refuse("UNKNOWN_MEMBER_ID")
        await anyio.sleep(2)
        for group in GROUPS:
            for member in self.broker.group(group).members:
                self.broker.forget_session(group, member.member_id)
            self.broker.expire_locks(group)

    async def _visit(self) -> None:
        """Let further members join for some minutes, and leave."""
        async with self._consumer(explicit=False), self._worker():
            await anyio.sleep(HEARTBEAT)
            await self._write("payments", len(QUIET_PLANS))
            await self._write("orders", len(QUIET_PLANS))
            await anyio.sleep(HEARTBEAT)

    async def _pause(self) -> None:
        """Pause a topic, whose records are withheld, and process others meanwhile."""
        await self._write("payments", len(QUIET_PLANS))
        self._reader.pause("payments")
        self._long_worker.pause("payments")
        await self._write("payments", len(QUIET_PLANS))
        await self._write("orders", len(QUIET_PLANS))
        await anyio.sleep(HEARTBEAT)
        self._reader.resume("payments")
        self._long_worker.resume("payments")

    async def _until_processed(self) -> None:
        try:
            await until(lambda: not self.ledger.lost(), within=TURN * HOUR, pause=5)
        except TimeoutError as error:
            states = [self.broker.group(group) for group in GROUPS]
            raise AssertionError(f"lost: {self.ledger.lost()}, {states}") from error

    # The members.

    @asynccontextmanager
    async def _consumer(
        self, *, explicit: bool
    ) -> AsyncIterator[ShareConsumer[bytes, bytes]]:
        consumer = ShareConsumer(
            "orders",
            "payments",
            group_id=READERS,
            acknowledgement="explicit" if explicit else "implicit",
            max_wait=LOCK,
            **self._options(),
        )
        process = self._acknowledge if explicit else self._process
        async with consumer:
            for _ in range(2):
                self._tasks.start_soon(_read, consumer, process)
            yield consumer

    def _process(self, record: Record[Any, Any]) -> None:
        number, _ = _read_value(record)
        self.ledger.end(READERS, number)

    def _acknowledge(self, record: Record[Any, Any]) -> None:
        number, plan = _read_value(record)
        if not self.ledger.is_first(READERS, number):
            plan = "succeed"
        match plan:
            case "release":
                record.release()
                return
            case "later":
                record.release(after=HOUR / 2)
                return
            case "forget":
                return  # its lock ends
            case "reject":
                record.reject()
            case "renew":
                record.renew()
                record.accept()
            case _:
                record.accept()
        self.ledger.end(READERS, number)

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator[ShareWorker[bytes, bytes]]:
        worker = ShareWorker(
            {
                "orders": Handler(self._handle, key_order=True),
                "payments": Handler(
                    self._handle, retry_topics=[RetryTopic("payments.retry", HOUR)]
                ),
            },
            group_id=WORKERS,
            dead_letter=DeadLetterQueue("dead"),
            retry=RetryPolicy(max_attempts=3, initial=60.0, maximum=600.0),
            on_outcome=self._on_outcome,
            handle_signals=False,
            max_wait=LOCK,
            **self._options(),
        )
        async with worker:
            yield worker

    async def _handle(self, record: Record[Any, Any]) -> None:
        number, plan = _read_value(record)
        is_first = self.ledger.is_first(WORKERS, number)
        match plan:
            case "fail":
                raise FailedError
            case "again" if is_first:
                raise Retry(after=5.0)
            case "later" if is_first:
                raise Retry(after=HOUR / 2)
            case "dead letter":
                raise DeadLetter("planned")
            case "reject":
                raise Reject("planned")
            case "slow":
                await anyio.sleep(SLOW)

    def _on_outcome(self, event: OutcomeEvent[Any, Any]) -> None:
        if isinstance(event.outcome, Accepted | Rejected | DeadLettered):
            number, _ = _read_value(event.record)
            self.ledger.end(WORKERS, number)


async def _read(
    consumer: ShareConsumer[Any, Any], process: Callable[[Record[Any, Any]], None]
) -> None:
    """Read until the consumer is closed; records that are damaged end a loop."""
    while True:
        try:
            async for record in consumer:
                try:
                    process(record)
                except LockLostError:
                    continue  # it is delivered again
        except CorruptRecordsError:
            continue
        return


def _values(numbers: range, plans: tuple[str, ...]) -> Iterator[bytes]:
    for number, plan in zip(numbers, islice(cycle(plans), len(numbers)), strict=True):
        yield f"{number} {plan}".encode()


def _read_value(record: Record[Any, Any]) -> tuple[int, str]:
    """Return the number and the plan of a record."""
    assert record.value is not None
    number, _, plan = record.value.decode().partition(" ")
    return int(number), plan
