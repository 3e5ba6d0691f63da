"""One history of the consumers' audit: consumers that come and go, pause and fail.

All times are of the event loop (`virtual_time`).
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from sharecons import ShareConsumer
from sharecons.errors import ClosedError
from sharecons.testing import EmbeddedBroker
from tests.scenarios.audit_events import (
    ARCHIVE,
    GROUP,
    create_archive,
    inject_fault,
    is_settled,
    start_brokers,
    unsettled,
)
from tests.scenarios.audit_network import AuditNetwork, Sent
from tests.scenarios.audit_readers import STYLES, ConsumerJournal, Readers
from tests.waiting import until

__all__ = ["DELIVERIES", "RECORDS", "TOPICS", "ConsumerHistory", "ConsumerLife"]

TOPICS: Final = {"orders": 3, "refunds": 2}
RECORDS: Final = 400
DELIVERIES: Final = 25
"""The delivery limit: no record reaches it, unless its deliveries are wasted."""

LOCKS: Final = (1000, 3000, 10000)
EVENTS: Final = ("pause", "pause all", "pause all", "cancel", "cut", "fault", "fault")
MOVES: Final = ("move leader", "move leader", "move coordinator", "stop", "start")
ENDS: Final = ("close", "close", "kill", "cancel")
SLEEPS: Final = (0.0, 0.05, 0.5, 3.0, 8.0, 25.0)
SETTLED: Final = 3000.0
STORED: Final = 200.0
"""Seconds in which a group at the end has acknowledged a record of each partition."""


@dataclass
class ConsumerHistory:
    """One history, chosen at random by its seed.

    Attributes:
        first: the first number that belongs to the group.
        happened: when something took place that can cost a delivery.
        sent: all acknowledgements but renewals of held locks.
        log: the options, the events and the ends of all lives.
    """

    broker: EmbeddedBroker
    seed: int
    journal: ConsumerJournal = field(default_factory=ConsumerJournal)
    lives: list["ConsumerLife"] = field(default_factory=list)
    happened: list[float] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    first: int = 0
    produced: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(f"consumers {self.seed}")
        self._is_latest = self.chance.random() < 0.5
        self._tasks: TaskGroup

    async def run(self) -> None:
        """Run all lives; the last one ends when every record is settled."""
        self._create()
        async with anyio.create_task_group() as self._tasks:
            if self._is_latest:
                await self._start_at_end()
            while self.produced < RECORDS:
                await self._live()
            await self._finish()

    def _create(self) -> None:
        broker = self.broker
        for topic, partitions in TOPICS.items():
            broker.create_topic(topic, partitions)
        create_archive(broker)
        config = {
            "errors.deadletterqueue.topic.name": ARCHIVE,
            "share.auto.offset.reset": "latest" if self._is_latest else "earliest",
            "share.session.timeout.ms": 6000,
            "share.heartbeat.interval.ms": 1000,
            "share.delivery.count.limit": DELIVERIES,
            "share.record.lock.duration.ms": self.chance.choice(LOCKS),
        }
        broker.set_group_config(GROUP, config)
        self._note(f"{config} brokers={len(broker.brokers)}")

    async def _start_at_end(self) -> None:
        """Start a group at the end; pause it before its first acknowledgement."""
        self._produce(20)
        life = self._start()
        with anyio.fail_after(60):
            await life.assigned.wait()
        self.first = self.produced
        if self.chance.random() < 0.7:
            life.pause(tuple(TOPICS))
            await self._sleep()
        for _ in range(3):
            self._produce(self.chance.randrange(20))
            await self._sleep()
        life.resume()
        self._produce(20)
        with anyio.move_on_after(STORED):
            await until(lambda: self._has_stored(life), within=SETTLED, pause=0.5)
        await self._end(life, "close")

    def _has_stored(self, life: "ConsumerLife") -> bool:
        """Return whether every partition has an acknowledgement of the member."""
        written = {(n % 5) for n in range(self.first, self.produced)}
        accepted = {
            number % 5
            for delivery, number in self.journal.done.items()
            if delivery.life == life.number
        }
        return written <= accepted

    # Lives.

    async def _live(self) -> None:
        """Let one consumer or two run until their ends."""
        lives = [self._start()]
        if self.chance.random() < 0.35:
            lives.append(self._start())
        for _ in range(self.chance.randint(1, 4)):
            self._produce(self.chance.choice([1, 10, 60]))
            await self._sleep()
            await self._happen(lives)
            await self._sleep()
        for life in lives:
            await self._end(life, self.chance.choice(ENDS))

    def _start(self, *, is_last: bool = False) -> "ConsumerLife":
        life = ConsumerLife(
            len(self.lives),
            self.broker,
            self.journal,
            random.Random(f"{self.seed} {len(self.lives)}"),
            on_sent=self.sent.append,
            is_calm=is_last,
        )
        self._note(f"life {life.number}: {life.options}")
        self.lives.append(life)
        self._tasks.start_soon(life.run)
        return life

    async def _sleep(self) -> None:
        await anyio.sleep(self.chance.choice(SLEEPS))

    async def _happen(self, lives: list["ConsumerLife"]) -> None:
        moves = MOVES if len(self.broker.brokers) > 1 else ()
        what = self.chance.choice([*EVENTS, *moves])
        life = self.chance.choice(lives)
        detail: object = life.number
        self._disturb()
        match what:
            case "pause" | "pause all":
                topics = tuple(TOPICS) if what == "pause all" else ("orders",)
                life.pause(topics)
                await self._sleep()
                self._produce(self.chance.choice([0, 10]))
                await self._sleep()
                life.resume()
            case "cancel":
                life.restart_readers()
            case "cut":
                await life.network.cut()
            case "fault":
                detail = inject_fault(self.broker, self.chance)
            case _:
                detail = self._move(what)
        self._disturb()
        self.counts[what] += 1
        self._note(f"{what} {detail}")

    def _move(self, what: str) -> object:
        """Move a leader or a coordinator, or stop or start a broker."""
        running = sorted(self.broker.running)
        node = self.chance.choice(running)
        match what:
            case "move leader":
                self.broker.move_leader("orders", self.chance.randrange(3), to=node)
            case "move coordinator":
                self.broker.move_coordinator(GROUP, to=node)
            case "stop" if len(running) > 1:
                self.broker.stop_broker(node)
            case _:
                start_brokers(self.broker)
        return node

    async def _end(self, life: "ConsumerLife", how: str) -> None:
        self._note(f"end life {life.number}: {how}")
        self.counts[how] += 1
        self._disturb()
        await life.end(how)
        self._disturb()

    async def _finish(self) -> None:
        """Let a consumer run without faults until all records are settled."""
        self.broker.faults.clear()
        start_brokers(self.broker)
        self._produce(50)
        life = self._start(is_last=True)
        try:
            await until(
                lambda: is_settled(self.broker, TOPICS), within=SETTLED, pause=1.0
            )
        except TimeoutError as error:
            error.add_note(f"not settled: {unsettled(self.broker)}")
            raise
        await self._end(life, "close")

    # Records.

    def _produce(self, count: int) -> None:
        """Write records; the number decides the topic and the partition."""
        numbers = range(self.produced, self.produced + count)
        self.produced += count
        for slot, (topic, partition) in enumerate(_partitions()):
            values = [b"%d" % n for n in numbers if n % 5 == slot]
            if values:
                batch = self.chance.choice([1, 7, None])
                self.broker.produce(topic, values, partition=partition, batch=batch)

    def _disturb(self) -> None:
        self.happened.append(anyio.current_time())

    def _note(self, text: str) -> None:
        self.log.append(f"{anyio.current_time():.3f} {text}")


class ConsumerLife:
    """One consumer and the tasks that read from it.

    Attributes:
        started: is set when the consumer has started.
        assigned: is set when the consumer has partitions.
        ended: is set when `run` has returned.
    """

    def __init__(
        self,
        number: int,
        broker: EmbeddedBroker,
        journal: ConsumerJournal,
        chance: random.Random,
        *,
        on_sent: Any,
        is_calm: bool,
    ) -> None:
        self.number = number
        self.started = anyio.Event()
        self.assigned = anyio.Event()
        self.ended = anyio.Event()
        self.ended_at = float("inf")
        self._journal = journal
        self._scope = anyio.CancelScope()
        self._readers_scope = anyio.CancelScope()
        self._is_closing = False
        style = "loop" if is_calm else chance.choice(STYLES)
        count = 1 if is_calm else chance.choice([1, 1, 3])
        explicit = style.startswith("explicit")
        settings: dict[str, Any] = {
            "acknowledgement": "explicit" if explicit else "implicit",
            "max_records": chance.choice([5, 100, 2000]),
            "acquire_mode": chance.choice(["batch_optimized", "record_limit"]),
            "max_wait": chance.choice([0.5, 2.0]),
            "request_timeout": chance.choice([5.0, 30.0]),
        }
        self.options = {"style": style, "tasks": count, **settings}
        self.network = AuditNetwork(broker, number, (), on_sent)
        self.consumer: ShareConsumer[Any, Any] = ShareConsumer(
            *TOPICS,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            network=self.network,
            member_id=f"life-{number}",
            **settings,
        )
        self.network.member_id = self.consumer.member_id
        self._readers = [
            Readers(
                self.consumer,
                journal,
                number,
                random.Random(f"{chance.random()} {task}"),
                style=style,
                is_calm=is_calm,
            )
            for task in range(count)
        ]

    async def run(self) -> None:
        try:
            with self._scope:
                async with self.consumer, anyio.create_task_group() as tasks:
                    self.started.set()
                    tasks.start_soon(self._wait_until_assigned)
                    while not self._is_closing:
                        await self._read()
                    tasks.cancel_scope.cancel()
        finally:
            self.ended.set()
            self.ended_at = anyio.current_time()

    async def _wait_until_assigned(self) -> None:
        await self.consumer.assigned()
        self.assigned.set()

    async def _read(self) -> None:
        """Read until the readers are cancelled, or the consumer is closed."""
        with anyio.CancelScope() as self._readers_scope:
            async with anyio.create_task_group() as tasks:
                for readers in self._readers:
                    tasks.start_soon(self._run, readers)

    async def _run(self, readers: Readers) -> None:
        try:
            await readers.run()
        except ClosedError:
            assert self._is_closing

    def restart_readers(self) -> None:
        """Cancel all tasks that read, and start others."""
        self._readers_scope.cancel()

    def pause(self, topics: tuple[str, ...]) -> None:
        if self.started.is_set():
            self.consumer.pause(*topics)

    def resume(self) -> None:
        if self.started.is_set():
            self.consumer.resume(*TOPICS)

    async def end(self, how: str) -> None:
        match how:
            case "close":
                self._is_closing = True
                self._readers_scope.cancel()
            case "cancel":
                self._scope.cancel()
            case _:
                self._journal.close(self.number)
                await self.network.kill()
                self._scope.cancel()
                return
        with anyio.fail_after(60):
            await self.ended.wait()


def _partitions() -> list[tuple[str, int]]:
    return [(topic, n) for topic, count in TOPICS.items() for n in range(count)]
