"""All of the demo together: the jobs, the consumers, the killing, and who watches."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from signal import SIGINT, SIGTERM
from types import TracebackType
from typing import ClassVar, Final, Protocol

import anyio
from anyio.abc import TaskGroup

from sharecons.demo.clock import DemoClock
from sharecons.demo.environment import Environment, demo_environment
from sharecons.demo.job_tracker import Ledger
from sharecons.demo.plan import Plan
from sharecons.demo.worker import Worker
from sharecons.escaping import escape

__all__ = ["Audience", "Outcome", "show"]

WRITING: Final = 0.25
"""Seconds between two writings of jobs."""

STANDSTILL: Final = 30.0
"""Seconds without any event after which nothing more is hoped for; a lock that has
to end first takes half as long (see `ground`)."""

MIDST: Final = 2
"""Jobs that the victim holds when it is killed."""


class Audience(Protocol):
    """Who is shown the demo: a screen, or lines of text. It is entered for the play."""

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    interval: ClassVar[float]
    """Seconds between two looks."""

    def opened(self, title: str) -> None: ...

    def look(self, ledger: Ledger, now: float) -> None: ...

    def closed(self, ledger: Ledger, now: float, *, interrupted: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended."""

    ledger: Ledger
    interrupted: bool


async def show(
    plan: Plan,
    bootstrap: str | None,
    audience: Audience,
    complain: Callable[[str], object],
    *,
    patience: float = STANDSTILL,
) -> Outcome:
    """Play the demo, on a broker of its own if none is named.

    It ends when all jobs are done, or nothing happened for `patience` seconds.
    Cancelling this, or a signal that asks to end, leaves nothing behind; what could not
    be deleted is complained of.

    Raises:
        Error: the broker cannot be reached, or has no share groups; in a group, if
            it was later.
    """
    ledger = Ledger(plan.names, expected=plan.jobs)
    async with _broker(bootstrap) as (address, title):
        async with demo_environment(address, complain) as place:
            watch = DemoClock()
            with audience:
                audience.opened(f"{_cast(plan)}, {title}")
                stage = _Stage(plan, place, ledger, watch)
                interrupted = await _play(stage, audience, patience)
                now = watch.now
                audience.look(ledger, now)
            if not interrupted:
                ledger.counted(await place.lag())
    audience.closed(ledger, now, interrupted=interrupted)
    return Outcome(ledger, interrupted)


@asynccontextmanager
async def _broker(bootstrap: str | None) -> AsyncIterator[tuple[str, str]]:
    """Give the address of a broker, and what to call it."""
    if bootstrap is not None:
        yield bootstrap, f"Kafka at {escape(bootstrap)}"
        return
    # A real Kafka is all that others need.
    from sharecons.testing.broker.embedded import EmbeddedBroker

    async with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers, "broker in this process"


def _cast(plan: Plan) -> str:
    return f"{plan.consumers} consumer{'s' * (plan.consumers > 1)}, 1 partition"


@dataclass(frozen=True, slots=True)
class _Stage:
    """What all who play have in common."""

    plan: Plan
    place: Environment
    ledger: Ledger
    watch: DemoClock

    def worker(self, name: str) -> Worker:
        return Worker(name, self.plan, self.place, self.ledger, self.watch)


async def _play(stage: _Stage, audience: Audience, patience: float) -> bool:
    """Play to the end; tells whether a signal ended it."""
    plan, ledger, watch = stage.plan, stage.ledger, stage.watch
    workers = {name: stage.worker(name) for name in plan.names}
    interrupted = anyio.Event()
    async with anyio.create_task_group() as watchers:
        watchers.start_soon(_follow, audience, ledger, watch)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_listen, tasks, interrupted)
            for worker in workers.values():
                tasks.start_soon(worker.run)
            tasks.start_soon(_write, stage)
            if plan.victim is not None:
                tasks.start_soon(_kill, stage, workers[plan.victim])
            await watch.until(lambda: ledger.finished, patience)
            tasks.cancel_scope.cancel()
        watchers.cancel_scope.cancel()
    return interrupted.is_set()


async def _listen(tasks: TaskGroup, interrupted: anyio.Event) -> None:
    """End the play at a signal, in order: consumers leave, and all is deleted."""
    try:
        with anyio.open_signal_receiver(SIGINT, SIGTERM) as signals:
            async for _ in signals:
                interrupted.set()
                tasks.cancel_scope.cancel()
    except (NotImplementedError, ValueError, RuntimeError):
        # Not on Windows, and in the main thread only: there Ctrl-C is an exception.
        await anyio.sleep_forever()


async def _follow(audience: Audience, ledger: Ledger, watch: DemoClock) -> None:
    while True:
        audience.look(ledger, watch.now)
        await anyio.sleep(audience.interval)


async def _write(stage: _Stage) -> None:
    """Write the jobs bit by bit, as somebody would who has no idea of consumers."""
    plan, written = stage.plan, 0
    while written < plan.jobs:
        due = min(1.0, (stage.watch.now + WRITING) / plan.writing)
        jobs = range(written + 1, max(written + 1, int(plan.jobs * due)) + 1)
        await stage.place.write(jobs)
        stage.ledger.produced(jobs)
        stage.watch.ring()
        written = jobs[-1]
        await anyio.sleep(WRITING)


async def _kill(stage: _Stage, worker: Worker) -> None:
    """Kill the victim halfway, when it has its hands full.

    Nothing that it said is under way then: of that nobody could know what became.
    """
    ledger, tally = stage.ledger, stage.ledger.tallies[worker.name]
    await stage.watch.until(
        lambda: (
            ledger.done >= stage.plan.kill_after
            and len(tally.held) >= MIDST
            and ledger.at_rest(worker.name)
        )
    )
    worker.kill()
