"""The program, for `python -m sharecons.spark.pipeline` and spark-submit."""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.chart import draw_chart
from sharecons.spark.pipeline.failures import explain
from sharecons.spark.pipeline.run import Run
from sharecons.spark.pipeline.session import qualify_location, start_session
from sharecons.spark.pipeline.settings import Settings, parse_arguments
from sharecons.spark.pipeline.stats import format_table

__all__ = ["main"]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

POLL_INTERVAL: Final = 0.2
"""Seconds between two checks for a signal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a pipeline until it ends, fails or is stopped; return the exit code.

    0: everything was read, or a signal stopped the run; 1: it failed; 2: an option is
    invalid; 3: no broker can be reached; 4: authentication or authorization failed; 5:
    the brokers are too old.
    """
    settings = parse_arguments(arguments)
    try:
        with _signals() as (stop, handle):
            _run(settings, stop, handle)
    except Exception as error:  # noqa: BLE001 (every failure ends in one sentence)
        return _report(error, settings)
    return 0


def _run(
    settings: Settings, stop: threading.Event, handle_signals: Callable[[], None]
) -> None:
    _check_chart_path(settings.picture)
    spark = start_session(verbose=settings.verbose)
    handle_signals()  # Spark has installed a handler of its own
    if stop.is_set():
        return
    run = Run(spark, replace(settings, into=qualify_location(spark, settings.into)))
    query = run.start()
    try:
        _wait(run, query, stop)
    finally:
        sys.stdout.write(format_table(run.batches))
        if settings.picture is not None:
            Path(settings.picture).write_text(draw_chart(run.batches), encoding="utf-8")


def _check_chart_path(path: str | None) -> None:
    if path is not None and not os.access(Path(path).absolute().parent, os.W_OK):
        raise ConfigurationError(f"--picture {path}: its directory is not writable")


def _wait(run: Run, query: Any, stop: threading.Event) -> None:
    """Wait until the query has ended; stop it if a signal came."""
    try:
        while not stop.is_set():
            if query.awaitTermination(POLL_INTERVAL):
                return
        run.stop()
    except Exception as error:
        # The signal might have ended Spark as well, or interrupted the query: the
        # next run replays the batch that was not finished. Our own errors have other
        # causes.
        if not stop.is_set() or explain(error).is_known:
            raise


@contextmanager
def _signals() -> Iterator[tuple[threading.Event, Callable[[], None]]]:
    """Make SIGINT and SIGTERM set an event; a second signal ends the program.

    The handlers do nothing else, because calls to Spark are not reentrant and this
    thread might be in one. Yields the event, and a function that installs the handlers
    again.
    """
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    def install() -> None:
        for number in SIGNALS:
            signal.signal(number, handle)

    install()
    try:
        yield stop, install
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(error: Exception, settings: Settings) -> int:
    failure = explain(error)
    hint = "" if failure.is_known or settings.verbose else " (--verbose shows more)"
    sys.stderr.write(f"pipeline: {failure.sentence}{hint}\n")
    if settings.verbose:
        traceback.print_exception(error)
    return failure.code


if __name__ == "__main__":
    sys.exit(main())
