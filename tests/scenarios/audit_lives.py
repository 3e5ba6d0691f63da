"""The lives of the worker's audit: runs of workers with random options and ends."""

import random
from collections.abc import Callable
from typing import Any, Final

import anyio

from sharecons import (
    BatchHandler,
    DeadLetterQueue,
    OutcomeEvent,
    RetryPolicy,
    RetryTopic,
    ShareWorker,
)
from sharecons.testing import EmbeddedBroker
from sharecons.worker.outcomes import (
    Accepted,
    LockLost,
    Rejected,
    Released,
)
from tests.scenarios.audit_events import GROUP
from tests.scenarios.audit_journal import (
    FailedError,
    Handlers,
    Journal,
    delivery_of,
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

Options = dict[str, Any]


def random_options(chance: random.Random) -> Options:
    """Return arguments of a worker; `batch` is no argument."""
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
    }


def last_options(chance: random.Random) -> Options:
    """Return arguments of a worker that settles every record."""
    return {
        **random_options(chance),
        "concurrency": 20,
        "timeout": chance.choice([0.3, 2.0]),
        "stop_on_error": False,
    }


class Outcomes:
    """Notes the outcomes of a life's records in the journal."""

    def __init__(self, life: int, journal: Journal) -> None:
        self._life = life
        self._journal = journal

    def __call__(self, event: OutcomeEvent[Any, Any]) -> None:
        record, outcome = event.record, event.outcome
        delivery = delivery_of(self._life, record)
        match outcome:
            case LockLost():
                self._journal.lost[delivery] = anyio.current_time()
            case Accepted() | Rejected() | Released():
                has_lock = anyio.current_time() <= record.lock_deadline
                self._journal.decided[delivery] = has_lock
                if isinstance(outcome, Accepted):
                    self._journal.accepted.add(delivery)
            case _:
                pass


class Life:
    """One run of a worker.

    Attributes:
        ended: is set when `run` has returned.
        failure: what `run` has raised.
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
    ) -> None:
        self.number = number
        self.member = member
        self.options = dict(options)
        self.ended = anyio.Event()
        self.failure: Exception | None = None
        self._journal = journal
        self._scope = anyio.CancelScope()
        topics = RETRIES if retries else ()
        copies = (DEAD, *(each.topic for each in topics))
        self.network = AuditNetwork(broker, number, copies, on_sent)
        handlers = Handlers(journal, number, chance)
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
            on_outcome=Outcomes(number, journal),
            **{name: value for name, value in options.items() if name != "batch"},
        )
        self.network.member_id = self.worker.member_id
        self._note_received()

    def _note_received(self) -> None:
        """Note the deliveries that the worker receives from its member."""
        access = self.worker._access
        take = access.take

        async def noting_take(*arguments: Any, **options: Any) -> Any:
            records = await take(*arguments, **options)
            for record in records:
                self._journal.receive(delivery_of(self.number, record))
            return records

        access.take = noting_take  # type: ignore[method-assign]

    async def run(self) -> None:
        try:
            with self._scope:
                await self.worker.run()
        except (FailedError, TimeoutError) as error:
            if not self.options["stop_on_error"]:
                raise
            self.failure = error
        finally:
            self.ended.set()

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
        with anyio.fail_after(grace + END):
            await self.ended.wait()

    async def kill(self) -> None:
        """End the life without a farewell, as SIGKILL does."""
        self._journal.close(self.number)
        await self.network.kill()
        self._scope.cancel()
