"""The whole demo: jobs are produced, processed, and shown in a view."""

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from sharecons.demo.clock import DemoClock
from sharecons.demo.environment import Environment, demo_environment
from sharecons.demo.job_tracker import JobTracker
from sharecons.demo.plan import Plan
from sharecons.escaping import escape
from sharecons.stop_signals import received_signals

if TYPE_CHECKING:
    from sharecons.demo.worker import DemoWorker

__all__ = ["DemoResult", "View", "run_demo"]

PRODUCE_INTERVAL: Final = 0.25
"""Seconds between two Produce requests."""

IDLE_TIMEOUT: Final = 30.0
"""Seconds without an event after which the demo ends; at least twice the lock duration
(see `environment`)."""

MIN_ACQUIRED_WHEN_KILLED: Final = 2
"""The number of jobs that a consumer must have when it is killed."""


class View(Protocol):
    """A view of the demo; it is entered while the workers run."""

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    interval: ClassVar[float]
    """Seconds between two calls of `update`."""

    def open(self, title: str) -> None: ...

    def update(self, tracker: JobTracker, now: float) -> None: ...

    def close(self, tracker: JobTracker, now: float, *, interrupted: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The final state of a demo; `interrupted` is True after a signal."""

    tracker: JobTracker
    interrupted: bool


async def run_demo(
    plan: Plan,
    bootstrap: str | None,
    view: View,
    write_error: Callable[[str], object],
    *,
    idle_timeout: float = IDLE_TIMEOUT,
) -> DemoResult:
    """Run the demo until all jobs are done.

    The topic and the group are always deleted, even after a signal or a cancellation.

    Args:
        bootstrap: the address of a broker; None starts an embedded broker.
        write_error: receives a line for each topic or group that cannot be deleted.
        idle_timeout: seconds without an event after which the demo ends.

    Raises:
        Error: the broker cannot be reached or does not support share groups.
        ExceptionGroup: the same kinds of errors, while the workers ran.
    """
    tracker = JobTracker(plan.names, expected=plan.jobs)
    async with _broker(bootstrap) as (address, title):
        async with demo_environment(address, write_error) as environment:
            clock = DemoClock()
            with view:
                view.open(f"{_describe_plan(plan)}, {title}")
                demo = _Demo(plan, environment, tracker, clock)
                interrupted = await _run_workers(demo, view, idle_timeout)
                now = clock.now
                view.update(tracker, now)
            if not interrupted:
                tracker.set_lag(await environment.fetch_lag())
    view.close(tracker, now, interrupted=interrupted)
    return DemoResult(tracker, interrupted)


@asynccontextmanager
async def _broker(bootstrap: str | None) -> AsyncIterator[tuple[str, str]]:
    """Yield the address of a broker and a description for the title."""
    if bootstrap is not None:
        yield bootstrap, f"Kafka at {escape(bootstrap)}"
        return
    # Imported late: not needed with a given broker.
    from sharecons.testing.broker.embedded import EmbeddedBroker

    async with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers, "in-memory broker"


def _describe_plan(plan: Plan) -> str:
    return f"{plan.consumers} consumer{'s' * (plan.consumers > 1)}, 1 partition"


@dataclass(frozen=True, slots=True)
class _Demo:
    """The objects that all tasks of a demo share."""

    plan: Plan
    environment: Environment
    tracker: JobTracker
    clock: DemoClock

    def new_worker(self, name: str) -> "DemoWorker":
        # Imported late: the view is shown before.
        from sharecons.demo.worker import DemoWorker

        return DemoWorker(name, self.plan, self.environment, self.tracker, self.clock)


async def _run_workers(demo: _Demo, view: View, idle_timeout: float) -> bool:
    """Run all workers until the jobs are done; return True if a signal ended it."""
    plan, tracker, clock = demo.plan, demo.tracker, demo.clock
    interrupted = anyio.Event()
    async with anyio.create_task_group() as view_tasks:
        view_tasks.start_soon(_update_view, view, tracker, clock)
        await checkpoint()  # the view draws its first picture
        workers = {name: demo.new_worker(name) for name in plan.names}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_on_signal, tasks, interrupted)
            for worker in workers.values():
                tasks.start_soon(worker.run)
            tasks.start_soon(_produce_jobs, demo)
            if plan.killed_consumer is not None:
                tasks.start_soon(_kill_when_busy, demo, workers[plan.killed_consumer])
            await clock.wait_until(lambda: tracker.is_finished, idle_timeout)
            tasks.cancel_scope.cancel()
        view_tasks.cancel_scope.cancel()
    return interrupted.is_set()


async def _cancel_on_signal(tasks: TaskGroup, interrupted: anyio.Event) -> None:
    """Cancel the workers at SIGINT or SIGTERM, so that they leave the group."""
    with ExitStack() as stack:
        try:
            signals = stack.enter_context(
                anyio.open_signal_receiver(*received_signals())
            )
        except (NotImplementedError, ValueError, RuntimeError):
            # On Windows and outside the main thread, Ctrl-C raises KeyboardInterrupt.
            return
        async for _ in signals:
            interrupted.set()
            tasks.cancel_scope.cancel()


async def _update_view(view: View, tracker: JobTracker, clock: DemoClock) -> None:
    while True:
        view.update(tracker, clock.now)
        await anyio.sleep(view.interval)


async def _produce_jobs(demo: _Demo) -> None:
    """Produce the jobs gradually, independently of the consumers."""
    plan, produced = demo.plan, 0
    async with demo.environment.open_producer() as producer:
        while produced < plan.jobs:
            due_share = (demo.clock.now + PRODUCE_INTERVAL) / plan.produce_seconds
            due = int(plan.jobs * min(1.0, due_share))
            jobs = range(produced + 1, max(produced + 1, due) + 1)
            await producer.produce(jobs)
            demo.tracker.on_produced(jobs)
            demo.clock.notify()
            produced = jobs[-1]
            await anyio.sleep(PRODUCE_INTERVAL)


async def _kill_when_busy(demo: _Demo, worker: "DemoWorker") -> None:
    """Kill a consumer at the planned time, once it has enough jobs.

    Wait until it has no unconfirmed acknowledgements: their results would be unknown.
    """
    tracker, stats = demo.tracker, demo.tracker.consumers[worker.name]
    await demo.clock.wait_until(
        lambda: (
            tracker.done_count >= demo.plan.kill_after
            and len(stats.acquired) >= MIN_ACQUIRED_WHEN_KILLED
            and tracker.is_confirmed(worker.name)
        )
    )
    worker.kill()
