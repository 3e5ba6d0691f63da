"""The journal of the worker's audit: the calls of handlers, by a record's number.

A life is one run of a worker. After a life is killed, nothing of it is noted any more:
a killed process does nothing. All times are of the event loop (`virtual_time`).
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

import anyio

from sharecons import DeadLetter, HandlerBatch, Record, Reject, Retry
from tests.scenarios.audit_hazards import (
    BrokenError,
    Hazards,
    block,
    broken_error,
    cancel_own_task,
)
from tests.scenarios.share_workers import Position

__all__ = [
    "Delivery",
    "FailedError",
    "Handlers",
    "Journal",
    "delivery_of",
    "is_unreadable",
    "number_of",
    "plan_of",
    "read_value",
]

CYCLE: Final = 50
PLANS: Final = {
    3: "fail once",
    7: "fail always",
    11: "hang",
    17: "retry",
    23: "reject",
    29: "dead letter",
    31: "swallow",
    37: "unreadable",
}
"""By the number modulo CYCLE; others succeed at their first attempt."""

WORK: Final = (0.0, 0.0, 0.001, 0.02, 0.5)
"""Seconds that a handler takes."""

BLOCKED: Final = (0.5, 2.0, 20.0, 70.0)
"""Seconds for which a handler blocks the event loop."""


UNREADABLE: Final = 1
"""The number modulo CYCLE of records that a deserializer cannot read."""


def plan_of(number: int, hazards: Hazards) -> str:
    plans = {**PLANS, **hazards.plans}
    return plans.get(number % CYCLE, "succeed")


class FailedError(Exception):
    """A planned failure of a handler."""


class UnreadableError(FailedError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Delivery(NamedTuple):
    """One delivery of a record to a member; the numbers of lives count from 0."""

    life: int
    at: Position
    delivery_count: int


class Journal:
    """The calls of all handlers.

    Attributes:
        calls: how often the handler of each number was called.
        returned: the numbers of deliveries whose handlers returned.
        swallowed: the same, of handlers that caught their cancellation.
        rejected: the same, of handlers that raised `Reject`, and of deserializers.
        done_at: when the handlers of `returned` returned.
        received: deliveries that a worker has received from its consumer, and the
            record of each, the last one if a delivery was received again.
        decided: deliveries that the worker has settled, except by copies, and whether
            it still had the lock then, as far as it knew.
        accepted: deliveries whose handlers have returned, as far as the worker knows.
        lost: deliveries whose locks the worker has lost, and when it noticed that.
        decided_at: when deliveries had an outcome, except a lost lock, and when their
            locks would have ended.
        copying: deliveries that the worker has decided to copy.
        lost_copies: the same, and their locks were lost.
        overlaps: deliveries whose handler began while the record's handler ran.
        ends: how many calls ended in each way.
        blocks: when handlers have blocked the event loop.
    """

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()
        self.returned: dict[Delivery, int] = {}
        self.swallowed: dict[Delivery, int] = {}
        self.rejected: dict[Delivery, int] = {}
        self.done_at: dict[Delivery, float] = {}
        self.received: dict[Delivery, Record[Any, Any]] = {}
        self.decided: dict[Delivery, bool] = {}
        self.accepted: set[Delivery] = set()
        self.lost: dict[Delivery, float] = {}
        self.decided_at: dict[Delivery, tuple[float, float]] = {}
        self.copying: set[Delivery] = set()
        self.lost_copies: set[Delivery] = set()
        self.overlaps: list[Delivery] = []
        self.blocks: list[float] = []
        self.ends: Counter[str] = Counter()
        self._running: set[tuple[int, Position]] = set()
        self._closed: set[int] = set()

    def receive(self, delivery: Delivery, record: Record[Any, Any]) -> None:
        """Enter a delivery that a worker has received.

        A broker stores a delivery count with the partition's next acknowledgement. So
        after a lost connection, a record can come again with the same count.
        """
        self.received[delivery] = record
        self.lost.pop(delivery, None)

    def lose(self, delivery: Delivery) -> None:
        """Enter a lost lock that a worker has noticed.

        It notices the loss of an earlier delivery, perhaps with the same count, when it
        receives the record again.
        """
        if delivery in self.copying:
            self.lost_copies.add(delivery)
        record = self.received.get(delivery)
        if record is None or not record.held:
            self.lost[delivery] = anyio.current_time()

    def close(self, life: int) -> None:
        """Ignore everything that this life does from now on."""
        self._closed.add(life)

    @contextmanager
    def calling(self, delivery: Delivery, number: int) -> Iterator[None]:
        """Enter a call of a handler, and find overlaps, until the block ends."""
        key = delivery.life, delivery.at
        if delivery.life not in self._closed:
            self.calls[number] += 1
            if key in self._running:
                self.overlaps.append(delivery)
        self._running.add(key)
        try:
            yield
        finally:
            self._running.discard(key)

    def end(self, delivery: Delivery, number: int, how: str) -> None:
        """Enter the end of a call; no await must follow until the handler's end."""
        if delivery.life in self._closed:
            return
        self.ends[how] += 1
        if how == "returned":
            self.returned[delivery] = number
            self.done_at[delivery] = anyio.current_time()
        elif how == "swallowed":
            self.swallowed[delivery] = number
        elif how == "rejected":
            self.rejected[delivery] = number

    def undo(self, delivery: Delivery) -> None:
        """Remove a handler's success, since its middleware failed afterwards."""
        self.returned.pop(delivery, None)
        self.done_at.pop(delivery, None)


class Handlers:
    """The handlers of one life: of a record, and of a batch."""

    def __init__(
        self, journal: Journal, life: int, chance: random.Random, hazards: Hazards
    ) -> None:
        self._journal = journal
        self._life = life
        self._chance = chance
        self._hazards = hazards

    async def one(self, record: Record[Any, Any]) -> None:
        """Handle a record as its number plans."""
        delivery, number = delivery_of(self._life, record), number_of(record)
        how = "cancelled"
        with self._journal.calling(delivery, number):
            try:
                error = await self._work(number)
                how = "returned" if error is None else _name(error)
                if error is not None:
                    raise error
            except anyio.get_cancelled_exc_class():
                if plan_of(number, self._hazards) != "swallow":
                    raise
                how = "swallowed"
            finally:
                self._journal.end(delivery, number, how)

    async def batch(self, batch: HandlerBatch[Any, Any]) -> None:
        """Handle records as planned; some batches hang, whatever their records."""
        records = [
            (delivery_of(self._life, record), number_of(record)) for record in batch
        ]
        hows = dict.fromkeys(records, "cancelled")
        with _all(self._journal.calling(*each) for each in records):
            try:
                await self._work_all(batch, records, hows)
            finally:
                for each in records:
                    self._journal.end(*each, hows[each])

    async def _work_all(
        self,
        batch: HandlerBatch[Any, Any],
        records: Sequence[tuple[Delivery, int]],
        hows: dict[tuple[Delivery, int], str],
    ) -> None:
        results: dict[tuple[Delivery, int], str] = {}
        await anyio.sleep(self._chance.choice(WORK))
        if self._chance.random() < 0.05:
            await anyio.sleep_forever()
        if any(
            plan_of(number, self._hazards) == "block"
            and self._journal.calls[number] <= 2
            for _, number in records
        ):
            self._block()
        for record, each in zip(batch, records, strict=True):
            error = self._result(each[1])
            results[each] = "returned" if error is None else _name(error)
            if error is not None:
                batch.fail(record, error)
        hows.update(results)

    async def _work(self, number: int) -> Exception | None:
        """Work as long as planned; return what the handler raises."""
        plan = plan_of(number, self._hazards)
        if plan == "hang":
            await anyio.sleep_forever()
        if plan == "swallow":
            await anyio.sleep(self._chance.choice([0.1, 3.0, 100.0]))
        if plan == "cancel" and self._journal.calls[number] == 1:
            cancel_own_task(None)
        if plan == "cancel later":
            cancel_own_task(self._chance.choice([0.0, 0.001, 0.3]))
        await anyio.sleep(self._chance.choice(WORK))
        if plan == "block" and self._journal.calls[number] <= 2:
            self._block()
        return self._result(number)

    def _block(self) -> None:
        block(self._chance.choice(BLOCKED))
        self._journal.blocks.append(anyio.current_time())

    def _result(self, number: int) -> Exception | None:
        """Return what the handler of a record raises."""
        calls = self._journal.calls[number]
        plan = plan_of(number, self._hazards)
        match plan:
            case "fail once" if calls == 1:
                return FailedError(f"record {number} fails once")
            case "fail always" | "hang":
                return FailedError(f"record {number} fails always")
            case "retry" if calls <= 2:
                return Retry(self._chance.choice([None, 0.0, 2.0, 30.0]))
            case "reject":
                return Reject(f"record {number} is rejected")
            case "dead letter":
                return DeadLetter(f"record {number} is a dead letter")
            case "unreadable" if calls <= 2:
                return UnreadableError()
            case _:
                return broken_error(plan)


def number_of(record: Record[Any, Any]) -> int:
    assert record.value is not None
    return int(record.value)


def delivery_of(life: int, record: Any) -> Delivery:
    at = Position(record.topic, record.partition, record.offset)
    return Delivery(life, at, record.delivery_count)


@contextmanager
def _all(calls: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for call in calls:
            stack.enter_context(call)
        yield


def _name(error: Exception) -> str:
    match error:
        case Retry():
            return "retried"
        case Reject():
            return "rejected"
        case DeadLetter():
            return "dead-lettered"
        case _:
            return "failed"


def read_value(value: bytes) -> int:
    """Return the number of a record; raise for some records, as a deserializer can."""
    number = int(value)
    if is_unreadable(number):
        raise BrokenError(number)
    return number


def is_unreadable(number: int) -> bool:
    return number % CYCLE == UNREADABLE
