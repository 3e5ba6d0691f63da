"""The program after its signal handlers are installed: starts Spark, runs, reports."""

import sys
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sharecons.spark.pipeline.failures import explain
from sharecons.spark.pipeline.live_page import LivePage
from sharecons.spark.pipeline.requeue import requeue
from sharecons.spark.pipeline.run import Run
from sharecons.spark.pipeline.run_stats import format_table
from sharecons.spark.pipeline.session import qualify_location, start_session
from sharecons.spark.pipeline.settings import Settings, parse_arguments

__all__ = ["run_program"]

POLL_INTERVAL: Final = 0.2
"""Seconds between two checks for a signal."""


def run_program(arguments: Sequence[str] | None, stop: threading.Event) -> int:
    """Run a pipeline until it ends, fails, or `stop` is set; return the exit code."""
    settings = parse_arguments(arguments)
    try:
        _run(settings, stop)
    except Exception as error:  # noqa: BLE001 (every failure ends in one sentence)
        return _report(error, settings)
    return 0


def _run(settings: Settings, stop: threading.Event) -> None:
    page = _open_page(settings)
    spark = None if stop.is_set() else _start_session(settings)
    if spark is None or stop.is_set():
        sys.stderr.write("pipeline: stopped by a signal before anything was read\n")
        return
    settings = replace(settings, into=qualify_location(spark, settings.into))
    if settings.requeues:
        sys.stdout.write(f"{requeue(spark, settings)}\n")
        return
    run = Run(spark, settings)
    query = run.start()
    try:
        _wait(run, query, stop, page)
    finally:
        sys.stdout.write(format_table(run.stats))
        if page is not None:
            page.write(run.stats)


def _start_session(settings: Settings) -> Any:
    # In the main thread Spark would replace the handler of SIGINT by one that raises
    # KeyboardInterrupt.
    with ThreadPoolExecutor(1) as pool:
        start = partial(start_session, sink=settings.sink, verbose=settings.verbose)
        return pool.submit(start).result()


def _open_page(settings: Settings) -> LivePage | None:
    if settings.page is None:
        return None
    topics = ", ".join(settings.topics)
    title = f"{topics} to {settings.into} (group {settings.group})"
    return LivePage(settings.page, title)


def _wait(run: Run, query: Any, stop: threading.Event, page: LivePage | None) -> None:
    """Wait until the query has ended; stop it if a signal came."""
    try:
        while not stop.is_set():
            if query.awaitTermination(POLL_INTERVAL):
                return
            if page is not None:
                page.update(run.stats)
        run.stop()
    except Exception as error:
        # The signal might have ended Spark as well, or interrupted the query: the
        # next run replays the batch that was not finished. Our own errors have other
        # causes.
        if not stop.is_set() or explain(error).is_known:
            raise


def _report(error: Exception, settings: Settings) -> int:
    failure = explain(error)
    hint = "" if failure.is_known or settings.verbose else " (--verbose shows more)"
    sys.stderr.write(f"pipeline: {failure.sentence}{hint}\n")
    if settings.verbose:
        traceback.print_exception(error)
    return failure.code
