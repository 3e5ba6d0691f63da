"""A share worker in its own process that logs what its handlers do.

    python -m tests.scenarios.share_worker_program OPTIONS

OPTIONS is a JSON object with the fields of `Program`. Each line of the log: kind, the
number in the record's value, the topic that delivered it, its partition, offset and
delivery count, and the topic, partition and offset of its origin. The kind `start` is a
handler that starts, `end` one that succeeds, `accepted` a confirmed accept (which has
no number, and the origin is unknown). Lines are written immediately, so that a killed
process loses none.

A handler chooses its action by the number: see `RecordPlan`.
"""

import faulthandler
import json
import os
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio

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
    ShareWorker,
)
from sharecons.worker.machine import window
from tests.scenarios.record_plans import plan_of

attempt_of_handler: ContextVar[int] = ContextVar("attempt_of_handler")


@dataclass(frozen=True, kw_only=True)
class Program:
    """The options of a program.

    Attributes:
        member: the member id, with which a restarted process rejoins without a wait.
        seconds: the time of a handler.
        plans: True if records fail as their numbers plan it; otherwise all succeed.
        window: the number of records that can wait behind another one; by default 80 %
            of Kafka's window.
    """

    bootstrap: str
    topic: str
    group: str
    log: str
    backend: str = "asyncio"
    member: str | None = None
    concurrency: int = 20
    seconds: float = 0.01
    shutdown_grace: float = 10.0
    plans: bool = False
    retry_topic: str | None = None
    retry_delay: float = 0.5
    dead_letter: str | None = None
    window: int | None = None


async def show_attempt(attempt: Attempt[Any, Any], call_next: CallNext) -> None:
    """Show the handler the number of its attempt."""
    attempt_of_handler.set(attempt.number)
    await call_next()


class Handler:
    """Logs each call, and does what the record's number plans."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._log = os.open(program.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.worker: ShareWorker[Any, Any]

    async def __call__(self, record: Record[Any, Any]) -> None:
        self._note("start", record)
        await anyio.sleep(self._program.seconds)  # real time: a handler's work
        if self._program.plans:
            self._fail_as_planned(int(record.value))
        self._note("end", record)

    def log_accepted(self, results: Sequence[AcknowledgeResult]) -> None:
        lines = [
            f"accepted -1 {each.topic} {each.partition} {offset} 0 - 0 0\n"
            for each in results
            if each.error is None and each.type.name == "ACCEPT"
            for offset in range(each.first_offset, each.last_offset + 1)
        ]
        os.write(self._log, "".join(lines).encode())

    def _note(self, kind: str, record: Record[Any, Any]) -> None:
        at = f"{record.topic} {record.partition} {record.offset}"
        origin = self.worker.origin(record)
        known = f"{origin.topic} {origin.partition} {origin.offset}"
        number = int(record.value)
        line = f"{kind} {number} {at} {record.delivery_count} {known}\n"
        os.write(self._log, line.encode())

    def _fail_as_planned(self, number: int) -> None:
        attempt = attempt_of_handler.get()
        match plan_of(number):
            case "fail once" if attempt == 1:
                raise TimeoutError("first attempt")
            case "wait" if attempt == 1:
                raise Retry(after=self._program.retry_delay)
            case "fail":
                raise ValueError("each attempt")
            case "dead letter":
                raise DeadLetter("planned")
            case _:
                pass


async def main(program: Program) -> None:
    if program.window is not None:
        window.USABLE = program.window / window.DEFAULT_WINDOW  # type: ignore[misc]
    handler = Handler(program)
    topics = [program.retry_topic] if program.retry_topic else []
    queue = DeadLetterQueue(program.dead_letter) if program.dead_letter else None
    handler.worker = ShareWorker(
        program.topic,
        handler,
        group_id=program.group,
        bootstrap_servers=program.bootstrap,
        member_id=program.member,
        on_acknowledged=handler.log_accepted,
        concurrency=program.concurrency,
        # Kills count as attempts: they give up no record here.
        retry=RetryPolicy(
            max_attempts=100,
            initial=0.05,
            maximum=0.2,
            by_exception={ValueError: RetryPolicy(max_attempts=3)},
        ),
        retry_topics=[RetryTopic(topic, program.retry_delay) for topic in topics],
        dead_letter=queue,
        shutdown_grace=program.shutdown_grace,
        middleware=[show_attempt],
    )
    await handler.worker.run()


if __name__ == "__main__":
    faulthandler.enable()  # SIGABRT prints the stacks of a hanging process
    options = Program(**json.loads(sys.argv[1]))
    anyio.run(main, options, backend=options.backend)
