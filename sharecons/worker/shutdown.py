"""How a run ends: which records are still processed, and which become dead letters.

After `stop`, nothing is fetched any more. Handlers have the grace period for the
records that were fetched before; then they are cancelled, as with `stop_now` or a
cancelled run, and the records are released. Records that wait move to retry topics,
once no fetch is in flight. A record that is on its last delivery
becomes a dead letter, even if no handler has received it: releasing it would archive
it.
"""

from collections.abc import Callable
from typing import Final

import anyio

from sharecons.member.record_source import SHORT_SETTLE_TIMEOUT, RecordSource
from sharecons.net.io.event_loop import Clock
from sharecons.worker.executor import Executor
from sharecons.worker.group_settings import GroupSettings
from sharecons.worker.machine.worker_machine import WorkerMachine
from sharecons.worker.routes import Routes
from sharecons.worker.take_loop import TakeLoop

__all__ = ["Shutdown"]

READ_LIMIT: Final = 0.2
"""Seconds to read the delivery limit again before records are released."""


class Shutdown:
    """Ends the run of a worker.

    Args:
        settings: the configs of the group.
        grace: seconds for handlers to finish.
        wake: is called when the state has changed.

    Attributes:
        grace: as the argument.
        handlers: the scope in which handlers are called; None before the first call.
        is_requested: the worker must end.
        has_drained: the consumer has returned its last record.
    """

    def __init__(
        self,
        source: RecordSource,
        routes: Routes,
        machine: WorkerMachine,
        executor: Executor,
        settings: GroupSettings,
        take_loop: TakeLoop,
        clock: Clock,
        *,
        grace: float,
        wake: Callable[[], None],
    ) -> None:
        self._source = source
        self.grace = grace
        self._has_dead_letters = bool(routes.dead_letter_topics)
        self._machine = machine
        self._executor = executor
        self._settings = settings
        self._take_loop = take_loop
        self._clock = clock
        self._wake = wake
        self._requested = anyio.Event()
        self.handlers: anyio.CancelScope | None = None
        self.has_drained = False

    @property
    def is_requested(self) -> bool:
        return self._requested.is_set()

    def stop(self) -> None:
        """Fetch no more; process what was fetched, within the grace period."""
        self._requested.set()

    def stop_now(self) -> None:
        """Cancel the handlers, and stop."""
        self._requested.set()
        if self.handlers is not None:
            self.handlers.cancel()

    async def run(self) -> None:
        """Wait for `stop`, then for the consumer's last record to be settled."""
        await self._requested.wait()
        assert self.handlers is not None, "started before"
        grace_end = self._clock() + self.grace
        self.handlers.deadline = min(self.handlers.deadline, grace_end)
        # Records that wait for hours must not delay the drain, which waits for them.
        async with anyio.create_task_group() as tasks:
            fetched = anyio.Event()
            tasks.start_soon(self._move_waiting, fetched)
            await self._source.drain(self._source.response_timeout, fetched.set)
        self.has_drained = True
        self._wake()

    async def _move_waiting(self, fetched: anyio.Event) -> None:
        """Hold no records any longer that wait: they would delay the end.

        A fetch in flight would return what is written to retry topics before its end.
        """
        with anyio.move_on_after(self._source.response_timeout):
            await fetched.wait()
        self._machine.stop()
        self._wake()
        await self._read_limit()
        await self._executor.move_waiting()

    async def finish(self) -> None:
        """Release all records; write the dead letters of last deliveries.

        Cancelling this has no effect.
        """
        await self._read_limit()
        await self._executor.finish()

    async def take_rest(self) -> None:
        """Write the dead letters of last deliveries that no handler has received.

        They wait in the consumer, or a fetch in flight returns them. Cancelling this
        has no effect; brokers have up to SHORT_SETTLE_TIMEOUT seconds to respond.
        """
        if not self._has_dead_letters or self.has_drained:
            return
        end = min(self._clock() + SHORT_SETTLE_TIMEOUT, self._source.settling_deadline)
        with anyio.CancelScope(shield=True, deadline=end):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._take_loop.take_rest)
                await self._source.drain(self._source.response_timeout)
                tasks.cancel_scope.cancel()
        await self._executor.finish()

    async def _read_limit(self) -> None:
        """Read the delivery limit, if it decides about a record: it is at least 2."""
        held = self._machine.scheduler.held
        if self._has_dead_letters and any(
            item.record.delivery_count > 1 for item in held
        ):
            with anyio.CancelScope(shield=True, deadline=self._clock() + READ_LIMIT):
                await self._settings.read_limit()
