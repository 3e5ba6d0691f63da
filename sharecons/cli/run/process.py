"""Runs one worker: signals, health port, progress, exit code."""

import argparse
import os
import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import anyio

from sharecons.cli import exit_codes, output
from sharecons.cli.exit_codes import ExitCode, write_errors
from sharecons.cli.run.arguments import PROGRAM
from sharecons.cli.run.build import build_worker
from sharecons.cli.run.exit_deadline import AT_ONCE, MARGIN, ExitDeadline
from sharecons.cli.run.handler_exits import exit_code_after
from sharecons.cli.run.lifeline import Lifeline, watch_lifeline
from sharecons.cli.run.logs import StatusLine, configure_logs
from sharecons.cli.run.processes import member_name
from sharecons.cli.run.progress import ProgressMeter, numbers
from sharecons.cli.run.report import Report, check_families, encode_report
from sharecons.cli.run.start_signals import exiting_on_signals
from sharecons.cli.run.target import TargetError
from sharecons.errors import Error
from sharecons.log import get_logger
from sharecons.metrics.families import MetricFamily, families_of
from sharecons.stop_signals import received_signals
from sharecons.worker.conditions import Condition
from sharecons.worker.metrics import WORKER_METRICS
from sharecons.worker.running_records import RunningRecords
from sharecons.worker.share_worker import ShareWorker

if TYPE_CHECKING:  # needs prometheus-client
    from sharecons.cli.run.health import HealthPages

__all__ = ["run_process"]

Worker = ShareWorker[Any, Any]

SHOW_INTERVAL: Final = 0.5
LOG_INTERVAL: Final = 10.0

_log = get_logger(__name__)


def run_process(options: argparse.Namespace) -> int:
    """Run the worker until it ends or a signal arrives; return the exit code."""
    with exiting_on_signals(), ExitStack() as stack:
        pages: HealthPages | None = None
        if options.process is None and options.health_port is not None:
            from sharecons.cli.run.health import health_port_in_thread

            server = health_port_in_thread(options.health_host, options.health_port)
            try:
                pages = stack.enter_context(server)
            except Error as error:
                write_errors(PROGRAM, [error])
                return ExitCode.USAGE
        return _run(options, pages)


def _run(options: argparse.Namespace, pages: "HealthPages | None") -> int:
    lifeline: Lifeline | None = None
    is_supervised = options.process is not None
    if is_supervised:
        deadline = ExitDeadline(_log.error)
        lifeline = watch_lifeline(lambda: _on_lost(deadline, options.grace, _log))
    try:
        worker = build_worker(options, _member_id(options))
    except TargetError as error:
        for line in error.details.splitlines():
            output.write_error(line)
        write_errors(PROGRAM, [error])
        return ExitCode.USAGE
    except Error as error:
        write_errors(PROGRAM, [error])
        return ExitCode.USAGE
    status = configure_logs(options.process, options.log_level)
    process = _Process(worker, options, None if is_supervised else status, lifeline)
    process.serve_health(pages)
    if options.running_records is not None:
        _share_running_records(worker, options.running_records)
    try:
        return exit_codes.run(PROGRAM, process.run)
    except (SystemExit, BaseExceptionGroup) as error:
        if isinstance(error, Exception):
            raise
        # asyncio raises SystemExit of a task in the main thread, outside of any task.
        process.log_failure(error)
        return exit_code_after(error, is_supervised=is_supervised)
    finally:
        if lifeline is not None:
            lifeline.report()  # the counts until the end


def _on_lost(deadline: ExitDeadline, grace: float, log: Any) -> None:
    """Exit after the grace period, even if the event loop is blocked at SIGTERM."""
    deadline.set(grace + MARGIN, ExitCode.FAILED)
    log.warning("the supervisor has died")


def _share_running_records(worker: Worker, descriptor: int) -> None:
    """Let the supervisor name the records that are running if this process dies."""
    try:
        worker.running_records = RunningRecords(
            descriptor, worker.subscription, worker.concurrency
        )
    except (OSError, ValueError) as error:
        _log.warning(
            "the supervisor will not name the records that are running if this process "
            "dies: there is no memory for their positions",
            error=str(error),
        )
    finally:
        os.close(descriptor)


def _member_id(options: argparse.Namespace) -> str | None:
    """Return the member id of this process; None for a new one."""
    if options.process is None and options.member_id is None:
        return None
    return f"{member_name(options)}-{options.process or 0}"


class _Process:
    """One run of a worker, with its exit code, status line and lifeline."""

    def __init__(
        self,
        worker: Worker,
        options: argparse.Namespace,
        status: StatusLine | None,
        lifeline: Lifeline | None,
    ) -> None:
        self._worker = worker
        self._options = options
        self._status = status
        self._lifeline = lifeline
        self._log = get_logger(__name__, group=worker.group_id)
        self._exit = ExitDeadline(self._log.error)
        self._code = int(ExitCode.SUCCESS)
        self._is_stopping = False
        self._is_live = True
        self._grace = min(options.grace, worker.shutdown_grace)
        if lifeline is not None:
            lifeline.on_lost = lambda: _on_lost(self._exit, self._grace, self._log)

    async def run(self) -> ExitCode:
        # This now decides about signals: it also ends the process if the worker does
        # not end.
        self._worker.handle_signals = False
        failure: Exception | None = None
        self._warn_of_grace()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._receive_signals)
            tasks.start_soon(self._log_progress if self._status is None else self._show)
            try:
                await self._worker.run()
            except Exception as error:  # noqa: BLE001 (raised below, not in a group)
                failure = error
            tasks.cancel_scope.cancel()
        return self._end(failure)

    def _warn_of_grace(self) -> None:
        grace = self._options.grace
        shutdown_grace = self._worker.shutdown_grace
        if grace < shutdown_grace:
            self._log.warning(
                "handlers have less time to finish than the worker's shutdown_grace; "
                "raise --grace",
                grace=grace,
                shutdown_grace=shutdown_grace,
            )

    def _end(self, failure: Exception | None) -> ExitCode:
        # The exit deadline goes on: a handler in a thread would keep the interpreter.
        if isinstance(failure, Error) and not self._worker.handler_failed:
            self._clear_status()
            raise failure
        if failure is not None:
            self.log_failure(failure)
            return ExitCode.FAILED
        self._clear_status()
        # Not a member of the enum if a signal ended the worker.
        return self._code  # type: ignore[return-value]

    def log_failure(self, error: BaseException) -> None:
        """Log the exception of a handler that ended the worker."""
        self._clear_status()
        self._log.error("worker failed", exc_info=error)

    def _clear_status(self) -> None:
        if self._status is not None:
            self._status.show("")

    # Signals.

    async def _receive_signals(self) -> None:
        with ExitStack() as stack:
            try:
                receiver = anyio.open_signal_receiver(*received_signals())
                signals = stack.enter_context(receiver)
            except NotImplementedError:  # on Windows, where Ctrl-C cancels the worker
                return
            async for received in signals:
                self._on_signal(signal.Signals(received))

    def _on_signal(self, received: signal.Signals) -> None:
        worker, number = self._worker, int(received)
        if self._is_stopping:
            self._log.warning("stopping immediately", signal=received.name)
            self._code = 128 + number
            self._exit.set(AT_ONCE, self._code)
            worker.stop_now()
            return
        self._is_stopping = True
        self._log.info("signal received", signal=received.name)
        self._exit.set(self._grace + MARGIN, ExitCode.FAILED)
        worker.stop()

    # Health and progress.

    def serve_health(self, pages: "HealthPages | None") -> None:
        """Respond at the health port, if there is one, or report to the supervisor."""
        if pages is not None:
            pages.live = self._liveness_problem
            pages.ready = self._readiness_problem
            pages.families = lambda: self._families(*self._problems())
            self._log.info("health port", url=pages.url)
        elif self._lifeline is not None and self._options.health_port is not None:
            self._lifeline.report_by(self._report)

    def _report(self, number: int) -> bytes:
        problems = self._problems()
        return encode_report(Report(number, *problems, self._families(*problems)))

    def _families(self, live: str | None, ready: str | None) -> list[MetricFamily]:
        worker, group = self._worker, self._worker.group_id
        return [
            *families_of(
                group, WORKER_METRICS, worker.metrics(), worker.consumer_metrics()
            ),
            *check_families(group, live, ready),
        ]

    def _problems(self) -> tuple[str | None, str | None]:
        return self._liveness_problem(), self._readiness_problem()

    def _liveness_problem(self) -> str | None:
        """Return why the process is not live, and log it when it begins.

        A handler that blocks the event loop for ever leaves no other line: a supervisor
        kills the process, which cannot even receive SIGTERM.
        """
        problem = _text_of(self._worker.not_live)
        if self._is_live and problem is not None:
            self._log.warning("not live", reason=problem)
        elif not self._is_live and problem is None:
            self._log.info("live again")
        self._is_live = problem is None
        return problem

    def _readiness_problem(self) -> str | None:
        return _text_of(self._worker.not_ready)

    async def _show(self) -> None:
        """Keep the status line of a terminal up to date."""
        assert self._status is not None, "this is run for a terminal"
        meter = ProgressMeter(time.monotonic())
        while True:
            self._status.show(meter.line(self._worker.stats, time.monotonic()))
            await anyio.sleep(SHOW_INTERVAL)

    async def _log_progress(self) -> None:
        """Log what the worker does now and then, if it does anything."""
        meter = ProgressMeter(time.monotonic())
        before = self._worker.stats
        while True:
            await anyio.sleep(LOG_INTERVAL)
            stats = self._worker.stats
            rate = meter.rate(stats, time.monotonic())
            if stats != before:
                self._log.info(
                    "progress", records_per_second=round(rate), **numbers(stats)
                )
            before = stats


def _text_of(conditions: tuple[Condition, ...]) -> str | None:
    """Return conditions as text, one a line; None if there are none."""
    return "\n".join(map(str, conditions)) or None
