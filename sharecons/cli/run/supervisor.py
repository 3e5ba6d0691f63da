"""Runs several processes of one command: starts, restarts and stops them.

`restarts` decides what follows when a process ends. The first SIGTERM or SIGINT is sent
to each process, which has `grace` seconds to stop. At a further one, processes get
SIGTERM again, and SIGKILL after two seconds. They have sessions of their own, so that
Ctrl-C on a terminal reaches them once, from here. If the supervisor itself dies,
`lifeline` ends them. `process_reports` has what they report. A process that dies leaves
the records that it processed in a file (`sharecons.worker.running_records`).
"""

import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from typing import IO, Final, NamedTuple

import anyio
from anyio.abc import Process, TaskGroup

from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.run.process_reports import ProcessReports
from sharecons.cli.run.restarts import Next, RestartPolicy
from sharecons.errors import Error
from sharecons.stop_signals import received_signals
from sharecons.worker.running_records import open_file, read_running

__all__ = ["Changes", "ProcessStartError", "Supervisor"]

MARGIN: Final = 5.0
"""Seconds after the grace period for a process to acknowledge, and leave the group."""

KILL_AFTER: Final = 2.0
"""Seconds from the second signal to SIGKILL."""

KILLED_AFTER: Final = 2.0
"""Seconds in which killed processes end."""

MAX_NAMES: Final = 3

Changes = Callable[[], AsyncIterator[Collection[str]]]
"""Yields the names of changed files."""


class ProcessStartError(Error):
    """A process cannot be started."""


class _End(NamedTuple):
    """The end of a process.

    Attributes:
        code: its exit code, or a negative signal; of a process that was to stop, what
            counts for the command.
        text: its exit code or signal, as a text.
        ran_for: the seconds since its start.
        records: in calls at its end; None for none.
    """

    code: int
    text: str
    ran_for: float
    records: str | None


class Supervisor:
    """Keeps processes running until a signal arrives, or until all have finished.

    Args:
        command: returns the arguments of the process with this index. The supervisor
            adds `--running-records FD`, the descriptor of the file for the records.
        count: how many processes run.
        grace: seconds for a process to stop.
        margin: more seconds, for its end; then it is killed.
        report: writes a line about what happens. A line about one process has its
            index as the keyword argument `process`.
        warn: writes a line about a process that has failed.
        fail: writes a line about a process that has died while it called handlers.
        changes: if given, the processes are restarted whenever it yields.

    Attributes:
        reports: the metrics and conditions of the processes.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        count: int,
        *,
        grace: float,
        margin: float = MARGIN,
        report: Callable[..., None],
        warn: Callable[..., None],
        fail: Callable[..., None],
        changes: Changes | None = None,
    ) -> None:
        self._command = command
        self._count = count
        self._limit = grace + margin
        self._report = report
        self._warn = warn
        self._fail = fail
        self._changes = changes
        self._running: dict[int, Process] = {}
        self._killed: set[Process] = set()
        self._codes: list[int] = []
        self._stopping = False
        self.reports = ProcessReports(count)

    async def run(self) -> int:
        """Run the processes; return the highest of their exit codes.

        Cancelling this kills them.

        Raises:
            ProcessStartError: a process cannot be started.
            Others as `changes`.
        """
        # Replaced and set when files have changed, and set when processes are to stop.
        self._changed = anyio.Event()
        with anyio.open_signal_receiver(*received_signals()) as signals:
            try:
                await self._run(signals)
            except* Error as group:
                raise _first_error(group) from None
            finally:
                await self._kill_all()
                self.reports.close_all()
        return max(self._codes, default=int(ExitCode.SUCCESS))

    async def _run(self, signals: AsyncIterator[signal.Signals]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._receive_signals, signals, tasks)
            if self._changes is not None:
                tasks.start_soon(self._restart_on_changes, self._changes, tasks)
            async with anyio.create_task_group() as keepers:
                for index in range(self._count):
                    keepers.start_soon(self._keep_running, index, tasks)
            tasks.cancel_scope.cancel()

    async def _kill_all(self) -> None:
        for process in self._running.values():
            _send(process, signal.SIGKILL)
        with anyio.move_on_after(KILLED_AFTER, shield=True):
            for process in self._running.values():
                await process.wait()

    # One process.

    async def _keep_running(self, index: int, tasks: TaskGroup) -> None:
        policy = RestartPolicy(watches_changes=self._changes is not None)
        while not self._stopping:
            changed = self._changed
            end = await self._run_once(index)
            if self._stopping:
                self._log_records(index, end, "the command stops")
                self._codes.append(end.code)
            elif changed.is_set():
                self._log_records(index, end, "it restarts")
                policy.reset()
            else:
                follows, delay = policy.after_end(end.code, end.ran_for)
                then = _next(follows, delay)
                if not self._log_records(index, end, then):
                    (self._report if follows is Next.FINISHED else self._warn)(
                        f"process {index} ended ({end.text}); {then}", process=index
                    )
                if follows in (Next.FINISHED, Next.STOP_ALL):
                    self.reports.finish(index)
                    self._codes.append(end.code)
                    if follows is Next.STOP_ALL:
                        self._stop(tasks, self._limit)
                    return
                if await self._wait(follows, delay, changed):
                    policy.reset()

    def _log_records(self, index: int, end: _End, then: str) -> bool:
        """Log the end of a process with the records in calls, if there are any."""
        if end.records is not None:
            self._fail(
                f"process {index} ended ({end.text}) while handlers ran; {then}",
                process=index,
                records=end.records,
            )
        return end.records is not None

    async def _run_once(self, index: int) -> _End:
        """Run a process until it ends."""
        began = time.monotonic()
        with _open_file(index) as file:
            process = await self._start(index, file)
            self._running[index] = process
            if self._stopping:  # since open_process began
                _send(process, signal.SIGTERM)
            code = await process.wait()
            del self._running[index]
            records = read_running(file)
        await self.reports.close(index)
        text = _end(code)
        if process in self._killed:
            self._killed.discard(process)
            code = ExitCode.FAILED
        elif self._stopping and code == -signal.SIGTERM:
            code = ExitCode.SUCCESS  # it was still starting, and held no records
        return _End(code, text, time.monotonic() - began, records)

    async def _start(self, index: int, file: IO[bytes]) -> Process:
        # The process has the other end of the connection alone: it ends with us.
        stdin = self.reports.open(index)
        descriptor = file.fileno()
        try:
            # A process that has started must be known here, to be killed.
            with anyio.CancelScope(shield=True):
                return await anyio.open_process(
                    [*self._command(index), f"--running-records={descriptor}"],
                    stdin=stdin.fileno(),
                    stdout=None,
                    stderr=None,
                    start_new_session=True,
                    pass_fds=(descriptor,),
                )
        except OSError as error:
            raise _cannot_start(index, error) from error
        finally:
            stdin.close()
        raise AssertionError("nothing cancels the scope")

    async def _wait(self, follows: Next, delay: float, changed: anyio.Event) -> bool:
        """Wait until the process is due; return whether files have changed."""
        limit = delay if follows is Next.RESTART else float("inf")
        with anyio.move_on_after(limit):
            await changed.wait()
        return changed.is_set()

    # All processes.

    async def _receive_signals(
        self, signals: AsyncIterator[signal.Signals], tasks: TaskGroup
    ) -> None:
        async for received in signals:
            name = signal.Signals(received).name
            if self._stopping:
                self._report(f"{name} again: the processes stop immediately")
                self._stop(tasks, KILL_AFTER)
            else:
                self._report(f"{name}: the processes finish their handlers")
                self._stop(tasks, self._limit)

    def _stop(self, tasks: TaskGroup, limit: float) -> None:
        self._stopping = True
        self._changed.set()
        self._terminate_all(tasks, limit)

    async def _restart_on_changes(self, changes: Changes, tasks: TaskGroup) -> None:
        async for names in changes():
            if not self._stopping:
                some = sorted(names)[:MAX_NAMES]
                more = ", …" if len(names) > MAX_NAMES else ""
                self._report(f"changed: {', '.join(some)}{more}; restarting")
                changed, self._changed = self._changed, anyio.Event()
                changed.set()
                self._terminate_all(tasks, self._limit)

    def _terminate_all(self, tasks: TaskGroup, limit: float) -> None:
        for index, process in self._running.items():
            tasks.start_soon(self._terminate, index, process, limit)

    async def _terminate(self, index: int, process: Process, limit: float) -> None:
        """Send SIGTERM; if the process still runs after `limit` seconds, SIGKILL."""
        _send(process, signal.SIGTERM)
        with anyio.move_on_after(limit):
            await process.wait()
            return
        self._warn(
            f"process {index} did not stop in {limit:g} s; it is killed", process=index
        )
        self._killed.add(process)
        _send(process, signal.SIGKILL)


def _open_file(index: int) -> IO[bytes]:
    try:
        return open_file()
    except OSError as error:
        raise _cannot_start(index, error) from error


def _cannot_start(index: int, error: OSError) -> ProcessStartError:
    return ProcessStartError(f"process {index} cannot be started: {error}")


def _send(process: Process, number: signal.Signals) -> None:
    # Popen.send_signal polls: if the process has just ended, it takes the exit code
    # away from asyncio's watcher, which then reports 255.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _end(code: int) -> str:
    """Return an exit code as text; a signal has its name."""
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def _next(follows: Next, delay: float) -> str:
    return {
        Next.FINISHED: "it has finished",
        Next.STOP_ALL: "the others are stopped",
        Next.WAIT_FOR_CHANGE: "it starts again when a file has changed",
        Next.RESTART: f"it starts again in {delay:g} s"
        if delay
        else "starting it again",
    }[follows]


def _first_error(group: BaseExceptionGroup[Error]) -> Error:
    error = group.exceptions[0]
    return _first_error(error) if isinstance(error, BaseExceptionGroup) else error
