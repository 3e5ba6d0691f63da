"""The lives of the worker's audit: runs of workers with random options and ends.

All times are of the event loop (`virtual_time`).
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import anyio

from sharecons import (
    BatchHandler,
    CallNext,
    DeadLetterQueue,
    OutcomeEvent,
    RetryPolicy,
    RetryTopic,
    ShareWorker,
)
from sharecons.errors import ConfigurationError, ConsumerStateError
from sharecons.testing import EmbeddedBroker
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    LockLost,
    Moved,
    Rejected,
    Released,
    RetryAfter,
)
from tests.scenarios.audit_events import GROUP
from tests.scenarios.audit_hazards import BrokenError, Hazards
from tests.scenarios.audit_journal import (
    Delivery,
    FailedError,
    Handlers,
    Journal,
    delivery_of,
    is_unreadable,
    number_of,
    read_value,
)
from tests.scenarios.audit_network import AuditNetwork, Sent

__all__ = ["DEAD", "RETRIES", "SOURCE", "Life", "last_options", "random_options"]

SOURCE: Final = "orders"
DEAD: Final = "orders.dead"
RETRIES: Final = (RetryTopic("orders.retry.5s", 5.0), RetryTopic("orders.retry", 40.0))

DAY: Final = 86400.0
END: Final = 12.0
"""Seconds in which a life ends, beside its grace period: up to 5 s for the last dead
letters, 3 s for the last acknowledgements, and 0.4 s to leave."""

BLOCKED: Final = 500.0
"""More seconds for a life whose handlers block the event loop while it ends."""

MAX_LAST_ATTEMPTS: Final = 5
"""Attempts of the last life: with 20, one key's records can take 50 minutes in turn."""

Options = dict[str, Any]


def random_options(chance: random.Random, hazards: Hazards) -> Options:
    """Return arguments of a worker; `batch` is no argument."""
    more: Options = {}
    if hazards.unreadable:
        choices = ("dead_letter", "reject", "release")
        more["on_deserialization_error"] = chance.choice(choices)
    if hazards.hot_keys:
        more["key_order"] = True
    initial = chance.choice([0.01, 0.5, 5.0])
    timeout = chance.choice([None, 0.3, 2.0, 20.0])
    return {
        "batch": chance.choice([None, None, 3, 40]),
        "max_records": chance.choice([5, 100, 2000]),
        "max_wait": chance.choice([0.1, 0.5]),
        "request_timeout": chance.choice([5.0, 30.0]),
        "concurrency": chance.choice([1, 3, 10, 50]),
        "max_held_bytes": chance.choice([50, 2000, 64 << 20]),
        "timeout": timeout,
        "max_lock_time": chance.choice([61.0, 300.0, DAY]),
        "key_order": chance.random() < 0.3,
        "stop_on_error": chance.random() < 0.15,
        "shutdown_grace": chance.choice([0.0, 1.0, 15.0]),
        "retry": RetryPolicy(
            max_attempts=chance.choice([1, 2, 3, 5, 20]),
            initial=initial,
            maximum=initial * chance.choice([1.0, 4.0]),
        ),
        **more,
    }


def last_options(chance: random.Random, hazards: Hazards) -> Options:
    """Return arguments of a worker that settles every record."""
    options = random_options(chance, hazards)
    attempts = min(options["retry"].max_attempts, MAX_LAST_ATTEMPTS)
    return {
        **options,
        "retry": replace(options["retry"], max_attempts=attempts),
        "concurrency": 20,
        "timeout": chance.choice([0.3, 2.0]),
        "stop_on_error": False,
    }


class Hooks:
    """The middleware and the outcome callback of a life, which can fail themselves."""

    def __init__(self, life: int, journal: Journal, hazards: Hazards) -> None:
        self._life = life
        self._journal = journal
        self._hazards = hazards
        self._calls = 0
        self.trips = 0
        """The number of failures that a circuit breaker has not seen yet."""

    async def wrap(self, attempt: Any, call_next: CallNext) -> None:
        """Fail before some calls, and after others; catch the error of others."""
        what = self._next_failure()
        if what == 0:
            raise BrokenError(0)
        try:
            await call_next()
        except FailedError:
            if what != 2:
                raise
        if what == 1:
            for record in attempt.records:
                self._journal.undo(delivery_of(self._life, record))
            raise BrokenError(1)

    def _next_failure(self) -> int:
        if not self._hazards.failing_hooks:
            return -1
        self._calls += 1
        return self._calls % 11

    def on_outcome(self, event: OutcomeEvent[Any, Any]) -> None:
        """Enter the outcome of a record in the journal; raise for some of them."""
        record, outcome = event.record, event.outcome
        delivery = delivery_of(self._life, record)
        if isinstance(outcome, Rejected) and is_unreadable(number_of(record)):
            self._journal.end(delivery, number_of(record), "rejected")
        self._note(delivery, record, outcome)
        self.trips += isinstance(outcome, RetryAfter)
        if self._hazards.failing_hooks and record.offset % 5 == 0:
            raise BrokenError(2)

    def _note(self, delivery: Delivery, record: Any, outcome: Any) -> None:
        if not isinstance(outcome, LockLost):
            times = anyio.current_time(), record.lock_deadline
            self._journal.decided_at[delivery] = times
        match outcome:
            case LockLost():
                self._journal.lose(delivery)
            case Moved() | DeadLettered():
                self._journal.copying.add(delivery)
            case Accepted() | Rejected() | Released():
                # A handler that blocks the event loop stops renewals: a worker cannot
                # notice that a lock has ended before the step that ends the block.
                now, blocks = anyio.current_time(), self._journal.blocks
                is_blocked = bool(blocks) and blocks[-1] == now
                has_lock = is_blocked or now <= record.lock_deadline
                self._journal.decided[delivery] = has_lock
                if isinstance(outcome, Accepted):
                    self._journal.accepted.add(delivery)
            case _:
                pass


class Life:
    """One run of a worker.

    Attributes:
        ended: is set when `run` has returned.
        failure: the exception of `run`.
        start_error: why the worker has not started.
        began, ended_at: when it began to start, and when `run` has returned.
    """

    def __init__(
        self,
        number: int,
        broker: EmbeddedBroker,
        journal: Journal,
        chance: random.Random,
        *,
        options: Options,
        retries: bool,
        member: str,
        on_sent: Callable[[Sent], None],
        hazards: Hazards,
    ) -> None:
        self.number = number
        self.hazards = hazards
        self.member = member
        self.options = dict(options)
        self.ended = anyio.Event()
        self.failure: Exception | None = None
        self.start_error = ""
        self.began = self.ended_at = math.inf
        self._journal = journal
        self._scope = anyio.CancelScope()
        topics = RETRIES if retries else ()
        copies = (DEAD, *(each.topic for each in topics))
        self.network = AuditNetwork(broker, number, copies, on_sent)
        handlers = Handlers(journal, number, chance, hazards)
        self._hooks = Hooks(number, journal, hazards)
        more: dict[str, Any] = {
            name: value for name, value in options.items() if name != "batch"
        }
        if hazards.unreadable:
            more["value_deserializer"] = read_value
        batch = options["batch"]
        self.worker: ShareWorker[Any, Any] = ShareWorker(
            SOURCE,
            handlers.one
            if batch is None
            else BatchHandler(handlers.batch, max_records=batch),
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            member_id=member,
            network=self.network,
            retry_topics=topics,
            dead_letter=DeadLetterQueue(DEAD),
            handle_signals=False,
            middleware=[self._hooks.wrap] if hazards.failing_hooks else [],
            on_outcome=self._hooks.on_outcome,
            **more,
        )
        self.network.member_id = self.worker.member_id
        self._note_received()

    def _note_received(self) -> None:
        """Enter all deliveries that the worker takes in the journal."""
        source = self.worker._source
        take = source.take

        async def noting_take(*arguments: Any, **options: Any) -> Any:
            records = await take(*arguments, **options)
            for record in records:
                self._journal.receive(delivery_of(self.number, record), record)
            return records

        source.take = noting_take  # type: ignore[method-assign]

    async def run(self) -> None:
        self.began = anyio.current_time()
        try:
            with self._scope:
                await self.worker.run()
        except ConfigurationError as error:
            if not self.hazards.odd_topics:
                raise
            self.start_error = str(error)
        except (FailedError, BrokenError, TimeoutError, ExceptionGroup) as error:
            if not self.options["stop_on_error"]:
                raise
            self.failure = error
        except RuntimeError as error:
            # "A handler that cancels its own task has failed", and a failure stops it.
            if not (self.options["stop_on_error"] and _is_self_cancel(error)):
                raise
            self.failure = error
        finally:
            self.ended_at = anyio.current_time()
            self.ended.set()

    async def break_circuits(self, seconds: float) -> None:
        """Pause the source after a failure, and resume it `seconds` later."""
        while not self.ended.is_set():
            await anyio.sleep(1.0)
            if self._hooks.trips:
                await self.pause((SOURCE,), seconds)
                self._hooks.trips = 0
            await anyio.sleep(seconds)

    async def pause(self, topics: Sequence[str], seconds: float) -> None:
        """Pause topics for some seconds, if the worker runs."""
        for change in (self.worker.pause, self.worker.resume):
            try:
                change(*topics)
            except ConsumerStateError:
                return  # it has not started, or has ended
            if change == self.worker.pause:
                await anyio.sleep(seconds)

    async def end(self, how: str) -> None:
        """End the life as told, and wait until it has ended, unless it is killed."""
        match how:
            case "stop":
                self.worker.stop()
            case "stop now":
                self.worker.stop_now()
            case "cancel":
                self._scope.cancel()
            case _:
                await self.kill()
                return
        grace = self.options["shutdown_grace"] if how == "stop" else 0.0
        blocked = BLOCKED if self.hazards.blocks else 0.0
        with anyio.fail_after(grace + END + blocked):
            await self.ended.wait()

    async def kill(self) -> None:
        """End the life without a farewell, as SIGKILL does."""
        self._journal.close(self.number)
        await self.network.kill()
        self._scope.cancel()


def _is_self_cancel(error: RuntimeError) -> bool:
    return str(error) == "the handler cancelled its own task"
