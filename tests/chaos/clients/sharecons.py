"""A process that consumes with sharecons.

python -m tests.chaos.clients.sharecons JSON
"""

import faulthandler
import json
import select
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from sharecons import (
    AcknowledgeResult,
    AcknowledgeType,
    AuthorizationError,
    BatchHandler,
    DeadLetter,
    HandlerBatch,
    OutcomeEvent,
    Record,
    Reject,
    Retry,
    RetryPolicy,
    RetryTopic,
    Security,
    ShareConsumer,
    ShareWorker,
)
from sharecons.worker.outcomes import DeadLettered, LockLost, Rejected
from tests.chaos.clients import USER, Options
from tests.chaos.clients.crashing import crash
from tests.chaos.clients.plans import CRASHES, plan_of
from tests.chaos.journal import Journal

__all__ = ["KINDS", "Program", "number_of"]

RESTARTS: Final = 100
"""Attempts of a record: kills and lost locks count, and must not use them up."""

RETRY_TOPIC: Final = 20.0
"""Seconds in the retry topic: too long to wait in place, see `run.RECORD_LOCKS`."""

REMEMBERED: Final = 1000
"""Numbers that have failed at their first attempt; each fails once."""


Consumer = ShareConsumer[Any, Any]


class Program:
    """One process, and the journal of its records."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._journal = Journal(options.journal)
        self._failed: dict[int, None] = {}

    def note(self, kind: str, record: Record[Any, Any], word: str = "") -> None:
        at = record.topic, record.partition, record.offset, record.delivery_count
        self._journal.note_all(kind, [(number_of(record), *at)], word)

    def note_outcome(self, event: OutcomeEvent[Any, Any]) -> None:
        """Record lost locks, and rejections and dead letters that no topic has."""
        if isinstance(event.outcome, LockLost):
            at = event.record.topic, event.record.partition, event.record.offset
            self._journal.note_all("failed", [(-1, *at, 0)], "LockLost")
        is_end = isinstance(event.outcome, Rejected | DeadLettered)
        if is_end and not self._options.dead_letter:
            self.note("rejected", event.record)

    def note_results(self, results: Sequence[AcknowledgeResult]) -> None:
        """Record the results of accepts."""
        for result in results:
            if result.type is not AcknowledgeType.ACCEPT:
                continue
            kind = "failed" if result.error else "accepted"
            error = _word(result.error) if result.error else ""
            offsets = range(result.first_offset, result.last_offset + 1)
            lines = [(-1, result.topic, result.partition, each, 0) for each in offsets]
            self._journal.note_all(kind, lines, error)

    # Loops.

    async def loop(self) -> None:
        """Accept each record by taking the next one."""
        async with self._consumer() as consumer:
            await self._consume(consumer, partial(self.note, "handled"))

    async def explicit(self) -> None:
        """Accept, release and reject records one by one."""
        async with self._consumer(acknowledgement="explicit") as consumer:
            await self._consume(consumer, self._acknowledge)

    async def _consume(
        self, consumer: Consumer, process: Callable[[Record[Any, Any]], None]
    ) -> None:
        """Process records; a topic that is denied is consumed again once it is not."""
        self._journal.note("started")
        while True:
            try:
                async for record in consumer:
                    await anyio.sleep(self._options.seconds)  # real time: a handler
                    process(record)
                return
            except AuthorizationError as error:
                # It is raised once: docs/consumer-running.md.
                sys.stderr.write(f"{error}\n")

    def _acknowledge(self, record: Record[Any, Any]) -> None:
        if not record.held:
            return
        match plan_of(number_of(record), self._options.plans):
            case "reject":
                self.note("rejected", record)
                record.reject()
            case "release" if record.delivery_count == 1:
                self.note("released", record)
                record.release()
            case _:
                self.note("handled", record)
                record.accept()

    def _consumer(self, **options: Any) -> Consumer:
        return ShareConsumer(
            self._options.topic,
            group_id=self._options.group,
            bootstrap_servers=self._options.servers,
            client_id=self._options.client_id,
            member_id=self._options.member,
            security=security_of(self._options),
            handle_signals=True,
            on_acknowledged=self.note_results,
            **options,
        )

    # Workers.

    async def work(self, handler: Any, **options: Any) -> None:
        few = RetryPolicy(max_attempts=3, initial=0.05)
        retry_topics = []
        if self._options.retry_topic:
            retry_topics = [RetryTopic(self._options.retry_topic, RETRY_TOPIC)]
        worker = ShareWorker(
            self._options.topic,
            handler,
            group_id=self._options.group,
            bootstrap_servers=self._options.servers,
            client_id=self._options.client_id,
            member_id=self._options.member,
            security=security_of(self._options),
            on_acknowledged=self.note_results,
            retry=RetryPolicy(
                max_attempts=RESTARTS,
                initial=0.05,
                maximum=0.5,
                by_exception={ValueError: few, MemoryError: few},
            ),
            retry_topics=retry_topics,
            dead_letter=self._options.dead_letter or None,
            on_outcome=self.note_outcome,
            **options,
        )
        self._journal.note("started")
        await worker.run()

    async def handle(self, record: Record[Any, Any]) -> None:
        with self._called(record):
            await anyio.sleep(self._options.seconds)  # real time: a handler's work
            self._finish(record)

    def handle_in_thread(self, record: Record[Any, Any]) -> None:
        with self._called(record):
            # Not time.sleep, which libfaketime breaks.
            select.select([], [], [], self._options.seconds)
            self._finish(record)

    async def handle_all(self, batch: HandlerBatch[Any, Any]) -> None:
        await anyio.sleep(self._options.seconds)  # real time: a handler's work
        for record in batch:
            try:
                with self._called(record):
                    self._finish(record)
            except Exception as error:
                batch.fail(record, error)

    @contextmanager
    def _called(self, record: Record[Any, Any]) -> Iterator[None]:
        self.note("begun", record)
        try:
            yield
        except BaseException:
            self.note("raised", record)
            raise

    def _finish(self, record: Record[Any, Any]) -> None:
        """Succeed, fail or crash as the record's number plans."""
        number = number_of(record)
        plan = plan_of(number, self._options.plans)
        match plan:
            case "fail once" if self._is_first(number):
                raise TimeoutError("fails once")
            case "retry" if self._is_first(number):
                raise Retry(after=RETRY_TOPIC if self._options.retry_topic else 1.0)
            case "fail until redriven" if not is_redriven(record):
                raise ValueError("fails until it is redriven")
            case "fail":
                raise ValueError("fails always")
            case "dead letter":
                raise DeadLetter("planned")
            case "reject":
                self.note("rejected", record)
                raise Reject("planned")
            case _ if plan in CRASHES.values():
                self.note("crashes", record, plan)
                crash(plan)
            case _:
                self.note("handled", record)

    def _is_first(self, number: int) -> bool:
        """Return whether this is the first of two attempts."""
        if number in self._failed:
            del self._failed[number]
            return False
        self._failed[number] = None
        # Another process can have the second attempt, and a long run has no end.
        if len(self._failed) > REMEMBERED:
            del self._failed[next(iter(self._failed))]
        return True


def security_of(options: Options) -> Security | None:
    """Return TLS and SCRAM with the files of now; the password is read once."""
    if not options.secrets:
        return None
    files = Path(options.secrets)
    tls = Security.tls(ca_file=files / "ca.pem", cert_file=files / "client.pem")
    password = (files / "password").read_text()
    return Security.sasl("SCRAM-SHA-512", USER, password, tls=tls)


def number_of(record: Record[Any, Any]) -> int:
    return int(record.value)


def is_redriven(record: Record[Any, Any]) -> bool:
    return any(name == "sharecons.redrives" for name, _ in record.headers)


def _word(error: object) -> str:
    """Return an error in one word, without addresses and numbers."""
    name = getattr(error, "name", None)
    return str(name) if name else type(error).__name__


KINDS: Final[Mapping[str, Callable[[Program], Awaitable[None]]]] = {
    "loop": Program.loop,
    "explicit": Program.explicit,
    "worker": lambda program: program.work(program.handle, concurrency=20),
    "threads": lambda program: program.work(program.handle_in_thread, concurrency=10),
    "batches": lambda program: program.work(
        BatchHandler(program.handle_all, max_records=50), concurrency=2
    ),
    "keys": lambda program: program.work(
        program.handle, concurrency=20, key_order=True
    ),
}
"""The ways to consume."""


async def main(options: Options) -> None:
    await KINDS[options.kind](Program(options))


if __name__ == "__main__":
    faulthandler.enable()  # SIGABRT prints the stacks of a hanging process
    given = Options(**json.loads(sys.argv[1]))
    anyio.run(main, given)
