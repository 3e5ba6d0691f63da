"""One history of the worker's audit: lives of workers until all records are settled.

All times are of the event loop (`virtual_time`).
"""

import math
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from sharecons.testing import EmbeddedBroker, OffsetState
from tests.scenarios.audit_events import (
    GROUP,
    OddTopic,
    change_config,
    correct_topic,
    create_archive,
    inject_fault,
    is_settled,
    spoil_topic,
    start_brokers,
    start_config,
    unsettled,
)
from tests.scenarios.audit_hazards import Hazards, headers_of, logging_fails
from tests.scenarios.audit_journal import Journal
from tests.scenarios.audit_lives import (
    DEAD,
    RETRIES,
    SOURCE,
    Life,
    last_options,
    random_options,
)
from tests.scenarios.audit_network import Sent
from tests.scenarios.share_workers import Position
from tests.waiting import until

__all__ = ["PARTITIONS", "RECORDS", "History"]

RECORDS: Final = 1500
PARTITIONS: Final = 3
MAX_LIVES: Final = 15
"""The number of lives before the last one."""

ENDS: Final = ("stop", "stop now", "cancel", "kill", "kill")
EVENTS: Final = ("fault", "fault", "fault", "cut", "cut all", "config")
MOVES: Final = ("move leader", "move coordinator", "stop broker", "start broker")
PAUSES: Final = (0.5, 3.0, 20.0, 70.0)
"""Seconds for which topics are paused."""

SETTLED: Final = 6000.0
"""Seconds in which the last life settles all records.

Its handlers block the loop for 70 s at a time, which loses all locks, and each record
has up to five attempts: seed 163 takes 3,100 s.
"""


@dataclass
class History:
    """One history, chosen at random by its seed.

    Attributes:
        sent: all acknowledgements but renewals of held locks.
        killed: the positions whose last delivery was in progress at a kill.
        reported: the positions whose dead letters a worker could not write before it
            ended, as its log has them.
        lowered: when the delivery limit was lowered, in milliseconds since the epoch,
            and from which limit.
        started: the wall clock's time at the event loop's time 0.
        lives: all lives, in order.
        odd: the copy topics with odd settings.
        disturbed: the times from and to which a broker, or what it has sent, was not
            available: faults, from the requests that they took, and moves.
        log: the options, the events and the ends of all lives.
    """

    broker: EmbeddedBroker
    seed: int
    hazards: Hazards = field(default_factory=Hazards)
    journal: Journal = field(default_factory=Journal)
    sent: list[Sent] = field(default_factory=list)
    killed: set[Position] = field(default_factory=set)
    reported: set[Position] = field(default_factory=set)
    lowered: list[tuple[int, int]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.retries = self.chance.random() < 0.6
        self.counts: Counter[str] = Counter()
        self._produced = 0
        self._lives = 0
        self.started = 0.0
        self._member: str | None = None
        self.lives: list[Life] = []
        self.disturbed: list[tuple[float, float]] = []
        self.odd: list[OddTopic] = []
        self._tasks: TaskGroup

    @property
    def retry_topics(self) -> tuple[str, ...]:
        return tuple(each.topic for each in RETRIES) if self.retries else ()

    async def run(self) -> None:
        """Run all lives; the last one ends when every record is settled."""
        self.started = time.time() - anyio.current_time()
        self._create()
        lives = self.chance.randint(6, MAX_LIVES)
        with logging_fails(self.hazards):
            async with anyio.create_task_group() as self._tasks:
                await self._run_lives(lives)

    async def _run_lives(self, lives: int) -> None:
        while self._lives < lives:
            self._produce(RECORDS // lives)
            await self._live()
        self._produce(RECORDS - self._produced)
        await self._finish()

    def _create(self) -> None:
        broker = self.broker
        broker.create_topic(SOURCE, PARTITIONS)
        broker.create_topic(DEAD, 1)
        create_archive(broker)
        for topic in self.retry_topics:
            broker.create_topic(topic, 2)
        config = start_config(self.chance)
        broker.set_group_config(GROUP, config)
        self._note(f"retries={self.retries} {config} {self.hazards}")

    def _produce(self, count: int) -> None:
        """Write records; the number decides the partition and the key."""
        numbers = range(self._produced, self._produced + count)
        self._produced += count
        for partition in range(PARTITIONS):
            mine = [n for n in numbers if n % PARTITIONS == partition]
            if self.hazards.forged:
                forged = [n for n in mine if n % 5 == 0]
                headers = headers_of(self.chance, SOURCE)
                self._write(partition, [n for n in mine if n % 5], [])
                self._write(partition, forged, headers)
            else:
                self._write(partition, mine, [])

    def _write(self, partition: int, numbers: list[int], headers: list[Any]) -> None:
        keys = 8 if self.hazards.hot_keys else 40
        self.broker.produce(
            SOURCE,
            [b"%d" % n for n in numbers],
            keys=[b"k%d" % (n % keys) if n % 4 else None for n in numbers],
            partition=partition,
            headers=headers,
            batch=self.chance.choice([1, 7, None]),
        )

    # Lives.

    async def _live(self) -> None:
        """Let one worker or two run until their ends."""
        lives = [self._start(random_options(self.chance, self.hazards))]
        if self.chance.random() < 0.35:
            lives.append(self._start(random_options(self.chance, self.hazards)))
        await self._sleep()
        for _ in range(self.chance.randint(0, 3)):
            await self._happen(lives)
            await self._sleep()
        for life in lives:
            if not life.ended.is_set():
                await self._end(life, self.chance.choice(ENDS))
            if self.chance.random() < 0.5:
                await self._sleep()

    async def _sleep(self) -> None:
        await anyio.sleep(self.chance.choice([0.0, 0.05, 0.5, 3.0, 20.0, 70.0]))

    def _start(self, options: dict[str, Any], *, is_last: bool = False) -> Life:
        member, self._member = self._member, None
        life = Life(
            self._lives,
            self.broker,
            self.journal,
            random.Random(f"{self.seed} {self._lives}"),
            options=options,
            retries=self.retries,
            member=member or f"life-{self._lives}",
            on_sent=self.sent.append,
            hazards=self.hazards,
        )
        self.lives.append(life)
        self._note(f"life {life.number}: member {life.member}, {options}")
        self._lives += 1
        self._tasks.start_soon(life.run)
        if self.hazards.breaks and not is_last:
            self._tasks.start_soon(life.break_circuits, self.chance.choice(PAUSES))
        return life

    @property
    def _events(self) -> tuple[str, ...]:
        pauses = ("pause", "pause", "pause all") if self.hazards.pauses else ()
        moves = MOVES if self.hazards.brokers > 1 else ()
        odd = ("copy topic",) * 3 if self.hazards.odd_topics else ()
        return (*EVENTS, *pauses, *moves, *odd)

    async def _happen(self, lives: list[Life]) -> None:
        what = self.chance.choice(self._events)
        detail: object = ""
        match what:
            case "fault":
                detail = inject_fault(self.broker, self.chance, self._on_fault)
            case "cut":
                await self.chance.choice(lives).network.cut()
            case "cut all":
                for life in lives:
                    await life.network.cut()
            case "pause":
                detail = await self._pause([self.chance.choice(lives)])
            case "pause all":
                detail = await self._pause(lives)
            case "config":
                detail = self._change_config()
            case "copy topic":
                detail = self._change_copy_topic()
            case _:
                self._on_fault(0.0)
                detail = self._move(what)
        self.counts[what] += 1
        self._note(f"{what} {detail}")

    def _on_fault(self, seconds: float) -> None:
        now = anyio.current_time()
        self.disturbed.append((now, now + seconds))

    async def _pause(self, lives: list[Life]) -> str:
        """Pause topics of some lives, and go on after a while."""
        topics = (SOURCE, *self.retry_topics)
        if self.chance.random() < 0.4:
            topics = topics[:1]
        seconds = self.chance.choice(PAUSES)
        for life in lives:
            self._tasks.start_soon(life.pause, topics, seconds)
        await anyio.sleep(seconds * self.chance.choice([0.5, 1.0]))
        return f"{topics} for {seconds} s"

    def _move(self, what: str) -> object:
        """Move a leader or a coordinator, or stop or start a broker."""
        broker, running = self.broker, sorted(self.broker.running)
        node = self.chance.choice(running)
        match what:
            case "move leader":
                partition = self.chance.randrange(PARTITIONS)
                broker.move_leader(SOURCE, partition, to=node)
                return partition, node
            case "move coordinator":
                broker.move_coordinator(GROUP, to=node)
            case "stop broker" if len(running) > 1:
                broker.stop_broker(node)
            case _:
                start_brokers(self.broker)
        return node

    def _change_copy_topic(self) -> OddTopic:
        """Spoil a copy topic, or correct it if one is odd."""
        if not self.odd or self.odd[-1].until < math.inf:
            topics = (DEAD, *self.retry_topics)
            self.odd.append(spoil_topic(self.broker, self.chance, topics))
        else:
            correct_topic(self.broker, self.odd[-1])
        return self.odd[-1]

    def _change_config(self) -> tuple[str, object]:
        before = self._delivery_limit
        changed = change_config(self.broker, self.chance)
        if self._delivery_limit < before:
            # Rounded down, as the time at which the broker archives records.
            self.lowered.append((int(time.time() * 1000), before))
        return changed

    @property
    def _delivery_limit(self) -> int:
        partitions = self.broker.cluster.share_partitions
        return partitions.group_settings(GROUP).delivery_limit

    async def _end(self, life: Life, how: str) -> None:
        self._note(f"end life {life.number}: {how}")
        self.counts[how] += 1
        if how == "kill":
            self._note_last_deliveries(life)
            if self.chance.random() < 0.5:
                self._member = life.member
        await life.end(how)

    def _note_last_deliveries(self, life: Life) -> None:
        """Remember the records that end with a killed life: their last delivery."""
        limit = self._delivery_limit
        member = life.worker.member_id
        try:
            group = self.broker.group(GROUP)
        except LookupError:
            return
        self.killed |= {
            Position(partition.topic, partition.partition, each.offset)
            for partition in group.partitions
            for each in partition.in_flight
            if each.state == OffsetState.ACQUIRED
            and each.member_id == member
            and each.delivery_count >= limit
        }

    async def _finish(self) -> None:
        """Let a worker run without faults until all records are settled."""
        self.broker.faults.clear()
        start_brokers(self.broker)
        if self.odd and self.odd[-1].until == math.inf:
            self._change_copy_topic()
        config = {"share.renew.acknowledge.enable": "true"}
        self.broker.set_group_config(GROUP, config)
        options = last_options(self.chance, self.hazards)
        life = self._start(options, is_last=True)
        topics = {SOURCE: PARTITIONS, **dict.fromkeys(self.retry_topics, 2)}
        try:
            await until(
                lambda: is_settled(self.broker, topics) or life.ended.is_set(),
                within=SETTLED,
                pause=5.0,
            )
            assert not life.ended.is_set(), "the worker has ended without a reason"
        except TimeoutError as error:
            error.add_note(f"not settled: {unsettled(self.broker)}")
            raise
        await self._end(life, "stop")

    def _note(self, text: str) -> None:
        self.log.append(f"{anyio.current_time():.3f} {text}")
