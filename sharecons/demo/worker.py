"""One worker of the demo, in a process of its own, as an application would write it."""

import json
import logging
import os
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from random import Random
from threading import Thread
from typing import Any, Final, NamedTuple

import anyio

from sharecons import (
    AcknowledgeResult,
    Attempt,
    CallNext,
    Error,
    OutcomeEvent,
    Record,
    RetryPolicy,
    ShareWorker,
)
from sharecons.worker.outcomes import Accepted, DeadLettered, RetryAfter

__all__ = ["CONCURRENT_JOBS", "KILLED", "WorkerPlan", "run_worker"]

CONCURRENT_JOBS: Final = 3
JOB_SECONDS: Final = 0.5, 1.5
FAILURE_RATE: Final = 0.25
"""The part of its jobs in which the failing worker fails once."""
RETRY: Final = RetryPolicy(max_attempts=3, initial=0.5)

KILLED: Final = 137
"""The exit code of a killed worker: 128 plus the number of SIGKILL, as in shells."""
MIN_JOBS_WHEN_KILLED: Final = 2
LATE: Final = 1.5
"""The multiple of `kill_from` from which one job is enough: on a loaded machine others
can have most jobs."""


class ServiceUnavailable(Exception):
    """A job has failed; its next attempt succeeds."""


class InvalidJob(Exception):
    """A job fails in every attempt, until it is redriven."""


class WorkerPlan(NamedTuple):
    """The settings of one worker.

    Attributes:
        topic: the topic of the jobs, and the name of the group.
        fails: whether it fails in some jobs.
        kill_from: the first job in which its process can be killed; None for never.
    """

    name: str
    servers: str
    topic: str
    dead_letter: str
    fails: bool
    kill_from: int | None


def run_worker(plan: WorkerPlan, reports: Connection) -> None:
    """Run a worker until SIGTERM or SIGINT.

    A report has the name of a method of `sharecons.demo.jobs.Jobs`, and its arguments.
    The last one is the error that has ended the worker, if any.
    """
    logging.disable()  # the views show what has failed
    Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):  # Ctrl-C while it starts
        try:
            anyio.run(_DemoWorker(plan, reports).create().run)
        except Error as error:
            reports.send(error)


def _exit_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _DemoWorker:
    """Processes jobs, and reports what becomes of them."""

    def __init__(self, plan: WorkerPlan, reports: Connection) -> None:
        self._plan = plan
        self._reports = reports
        self._running: dict[int, int] = {}
        """The numbers of jobs by offset; the topic has one partition."""
        self._settling: dict[int, tuple[str | int, ...]] = {}
        """Reports by offset, until the broker confirms the acknowledgements."""

    def create(self) -> ShareWorker[bytes, Any]:
        plan = self._plan
        return ShareWorker(
            plan.topic,
            self.process,
            group_id=plan.topic,
            bootstrap_servers=plan.servers,
            # When it restarts it is the same member, which leaves the group at the end.
            member_id=f"{plan.topic}-{plan.name}",
            client_id=f"sharecons-demo-{plan.name}",
            value_deserializer=json.loads,
            # All workers have a share of the few jobs in a batch.
            acquire_mode="record_limit",
            concurrency=CONCURRENT_JOBS,
            retry=RETRY,
            dead_letter=plan.dead_letter,
            middleware=[self.observe],
            on_outcome=self.on_outcome,
            on_acknowledged=self.on_acknowledged,
        )

    async def process(self, record: Record[bytes, Any]) -> None:
        """Process one job: the handler."""
        await anyio.sleep(Random().uniform(*JOB_SECONDS))
        assert record.value is not None, "a job"
        if record.value["invalid"] and not record.headers:  # a redrive adds headers
            raise InvalidJob("no such customer")

    async def observe(self, attempt: Attempt[bytes, Any], call_next: CallNext) -> None:
        """Report an attempt, and let some fail: the middleware."""
        record, number = attempt.record, _number(attempt.record)
        self._running[record.offset] = number
        self._report("on_started", number, attempt.number, record.delivery_count)
        try:
            await call_next()
        finally:
            del self._running[record.offset]
        is_first = attempt.number == record.delivery_count == 1
        if self._plan.fails and is_first and Random().random() < FAILURE_RATE:
            raise ServiceUnavailable

    def on_outcome(self, event: OutcomeEvent[bytes, Any]) -> None:
        number, offset = _number(event.record), event.record.offset
        match event.outcome:
            case Accepted():
                self._settling[offset] = "on_done", number
            case DeadLettered(reason=reason):
                self._settling[offset] = "on_dead", number, reason
            case RetryAfter():
                self._report("on_failed", number, type(event.error).__name__)
            case other:
                self._report("on_lost", number, type(other).__name__)

    def on_acknowledged(self, results: list[AcknowledgeResult]) -> None:
        """Report what the broker has confirmed: only then a job is done."""
        for result in results:
            for offset in range(result.first_offset, result.last_offset + 1):
                report = self._settling.pop(offset, None)
                if report is None:
                    continue  # the worker stops, and has released it
                if result.error is not None:
                    report = "on_lost", report[1], result.error.name
                self._report(*report)
        self._die_if_due()

    def _die_if_due(self) -> None:
        """End as by SIGKILL: nothing is sent, and the system closes the connections.

        Not while the result of an acknowledgement is unknown: the report could be
        missing although the job is done.
        """
        kill_from, running = self._plan.kill_from, self._running.values()
        if kill_from is None or self._settling or not running:
            return
        latest = max(running)
        is_late = latest >= LATE * kill_from
        if is_late or (latest >= kill_from and len(running) >= MIN_JOBS_WHEN_KILLED):
            os._exit(KILLED)

    def _report(self, *report: str | int) -> None:
        self._reports.send(report)


def _number(record: Record[bytes, Any]) -> int:
    assert record.value is not None, "a job"
    number: int = record.value["job"]
    return number
