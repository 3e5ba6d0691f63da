"""The whole demo: topics, workers, jobs, a redrive, and the check."""

import json
import multiprocessing
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any, Final
from uuid import uuid4

import anyio
from anyio import to_thread

from sharecons import (
    Error,
    Producer,
    ProducerRecord,
    ShareGroupAdmin,
)
from sharecons.admin import NewTopic
from sharecons.dead_letters import DeadLetters
from sharecons.demo.jobs import Jobs
from sharecons.demo.views import View
from sharecons.demo.worker import KILLED, WorkerPlan, run_worker

__all__ = ["run_demo"]

INVALID_AT: Final = 0.2
"""The part of the jobs before the invalid one."""
KILLED_AT: Final = 0.4
"""The part of the jobs before a worker is killed."""
JOBS_PER_BATCH: Final = 6
BATCH_INTERVAL: Final = 0.25  # seconds
RESTART_SECONDS: Final = 4.0
IDLE_SECONDS: Final = 60.0
"""Seconds without a report after which the demo ends; twice the lock duration."""
STOP_SECONDS: Final = 10.0
POLL_INTERVAL: Final = 0.1  # seconds


def _process_context() -> SpawnContext | ForkServerContext:
    # A fork server imports the package once, for all workers; Windows has none.
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([run_worker.__module__])
    return context


async def run_demo(
    jobs: Jobs,
    servers: str,
    view: View,
    write_error: Callable[[str], object],
    *,
    idle_seconds: float = IDLE_SECONDS,
    linger: Callable[[bool], Awaitable[object]] | None = None,
) -> bool:
    """Run the demo; return whether its check has passed.

    Topics and group are deleted at the end, even after an error or a cancellation.

    Args:
        servers: the address of a broker.
        write_error: receives a line for each topic or group that cannot be deleted.
        idle_seconds: the time without a report after which the demo ends.
        linger: is awaited before the deletion, with the result.

    Raises:
        Error: the broker cannot be reached or lacks share groups, or it rejects a
            request of the demo or of a worker.
    """
    topic = f"sharecons-demo-{uuid4().hex[:8]}"
    async with ShareGroupAdmin(
        bootstrap_servers=servers, timeout=10.0, connect_timeout=3.0
    ) as admin:
        await _create_topics(admin, topic)
        try:
            with view.live:
                demo = _Demo(jobs, servers, topic, view, idle_seconds)
                letters = await demo.run()
            with suppress(Error):  # the check works without it
                listed = await admin.list_share_group_offsets(topic)
                offsets = listed[topic].value.found.values()
                jobs.lag = sum(each.lag or 0 for each in offsets)
            problems = jobs.problems(letters)
            verdict = f"Check passed: each job was done once, in {demo.now:.1f} s."
            failed = ["Check failed:", *(f"  {each}" for each in problems)]
            view.close(jobs, failed if problems else [verdict])
            if linger is not None:
                await linger(not problems)
        finally:
            with anyio.CancelScope(shield=True):
                await _delete(admin, topic, write_error)
    return not problems


def _dead_letter_topic(topic: str) -> str:
    return f"{topic}.dead"


async def _create_topics(admin: ShareGroupAdmin, topic: str) -> None:
    names = topic, _dead_letter_topic(topic)
    topics = (NewTopic(name, partitions=1) for name in names)
    (await admin.create_topics(*topics)).check()


async def _delete(
    admin: ShareGroupAdmin, topic: str, write_error: Callable[[str], object]
) -> None:
    left: dict[str, Error] = {}
    try:
        left |= (await admin.delete_share_groups(topic)).errors
        left |= (await admin.delete_topics(topic, _dead_letter_topic(topic))).errors
        await admin.alter_group_configs(topic, {"share.auto.offset.reset": None})
    except Error as error:
        left[topic] = error
    for name, reason in left.items():
        if getattr(reason, "name", "") != "GROUP_ID_NOT_FOUND":
            write_error(f"{name} could not be deleted: {reason}")


class _Worker:
    """A worker's process, and the pipe with its reports."""

    def __init__(self, plan: WorkerPlan) -> None:
        self.plan = plan
        self.start()

    def start(self) -> None:
        context = _process_context()
        self.killed_at: float | None = None
        self.reports, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=run_worker, args=(self.plan, sender))
        self.process.start()
        sender.close()  # the process has it

    def read(self) -> Iterator[tuple[Any, ...]]:
        """Yield the reports until now.

        Raises:
            Error: it has ended the worker.
            EOFError: the process has ended.
        """
        while self.reports.poll():
            report = self.reports.recv()
            if isinstance(report, Error):
                raise report
            yield report


class _Demo:
    """The jobs and workers of one run."""

    def __init__(
        self, jobs: Jobs, servers: str, topic: str, view: View, idle_seconds: float
    ) -> None:
        self._jobs = jobs
        self._servers = servers
        self._topic = topic
        self._view = view
        self._idle_seconds = idle_seconds
        self._start = time.monotonic()
        self._last_report = 0.0  # as `now`
        self._workers: list[_Worker] = []

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    async def run(self) -> dict[int, str]:
        """Have all jobs done; return the reasons of dead letters by job."""
        try:
            self._view.update(self._jobs, self.now)
            self._start_workers()
            await self._produce()
            await self._wait_for_jobs()
            letters = await self._redrive()
            await self._wait_for_jobs()
            return letters
        finally:
            for worker in self._workers:
                worker.process.terminate()  # SIGTERM: finish the jobs, leave the group
            with anyio.CancelScope(shield=True):
                for worker in self._workers:
                    await to_thread.run_sync(worker.process.join, STOP_SECONDS)
                    worker.process.kill()  # if it has not ended by then

    def _start_workers(self) -> None:
        names, total = list(self._jobs.workers), self._jobs.total
        for index, name in enumerate(names):
            is_killed = index == 2 % len(names) and len(names) > 1
            plan = WorkerPlan(
                name,
                self._servers,
                self._topic,
                _dead_letter_topic(self._topic),
                fails=index == 1 % len(names),
                kill_from=int(total * KILLED_AT) if is_killed else None,
            )
            self._workers.append(_Worker(plan))

    async def _produce(self) -> None:
        total = self._jobs.total
        invalid = int(total * INVALID_AT) + 1
        async with Producer(
            bootstrap_servers=self._servers, client_id="sharecons-demo"
        ) as producer:
            for first in range(1, total + 1, JOBS_PER_BATCH):
                numbers = range(first, min(first + JOBS_PER_BATCH, total + 1))
                jobs = ({"job": n, "invalid": n == invalid} for n in numbers)
                values = (json.dumps(job).encode() for job in jobs)
                records = [ProducerRecord(self._topic, value) for value in values]
                for written in await producer.send_many(records):
                    if isinstance(written, Error):
                        raise written
                await self._wait(BATCH_INTERVAL)

    async def _wait_for_jobs(self) -> None:
        """Wait until no job can proceed, or no worker has reported for long."""
        while self._jobs.is_busy and self.now - self._last_report < self._idle_seconds:
            await self._wait(POLL_INTERVAL)

    async def _redrive(self) -> dict[int, str]:
        """Redrive the dead letters; return their reasons by the number of the job."""
        letters: dict[int, str] = {}
        topic, servers = _dead_letter_topic(self._topic), self._servers
        async with DeadLetters(topic, bootstrap_servers=servers) as dead:
            async for letter in dead.read():
                assert letter.value is not None, "a job"
                reason = "" if letter.origin is None else letter.origin.reason
                letters[json.loads(letter.value)["job"]] = reason
            await dead.redrive()
        self._jobs.on_redriven(self.now)
        return letters

    async def _wait(self, seconds: float) -> None:
        """Sleep, and show what has happened meanwhile."""
        await anyio.sleep(seconds)
        for worker in self._workers:
            if worker.killed_at is None:
                self._read(worker)
            elif self.now - worker.killed_at > RESTART_SECONDS:
                worker.plan = worker.plan._replace(kill_from=None)
                worker.start()
                self._jobs.on_restarted(worker.plan.name, self.now)
        self._view.update(self._jobs, self.now)

    def _read(self, worker: _Worker) -> None:
        name = worker.plan.name
        try:
            for method, *arguments in worker.read():
                getattr(self._jobs, method)(name, self.now, *arguments)
                self._last_report = self.now
        except EOFError:
            worker.process.join()
            if worker.process.exitcode != KILLED:
                code = worker.process.exitcode
                raise Error(f"worker {name} ended with exit code {code}") from None
            worker.killed_at = self.now
            self._jobs.on_killed(name, self.now)
