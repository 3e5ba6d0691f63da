"""`python -m sharecons.spark.pipeline page`: makes a page of runs, without Spark."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.files import replace_local_file
from sharecons.spark.pipeline.page import make_page
from sharecons.spark.pipeline.run_files import read_batches
from sharecons.spark.pipeline.settings import PAGE, PROGRAM

__all__ = ["run_page_command"]

FILE_NAME: Final = "page.html"
FAILED: Final = 1
INVALID: Final = 2


def run_page_command(arguments: Sequence[str]) -> int:
    """Make the page; return the exit code: 0, 1 (not written) or 2 (invalid).

    Args:
        arguments: the command line after the name of the command.
    """
    parsed = _parser().parse_args(arguments)
    try:
        written = _write(parsed.directory, parsed.run, parsed.output)
    except ConfigurationError as error:
        sys.stderr.write(f"pipeline: {error}\n")
        return INVALID
    except OSError as error:
        sys.stderr.write(f"pipeline: the page cannot be written: {error}\n")
        return FAILED
    sys.stdout.write(f"{written}\n")
    return 0


def _write(directory: str, run: str | None, output: str | None) -> str:
    if output is None and "://" in directory:
        raise ConfigurationError(
            f"{directory} is a URL, and the page is written to this machine; add "
            "--output FILE"
        )
    path = str(Path(output or Path(directory, FILE_NAME)).absolute())
    stored = read_batches(directory)
    batches = stored.batches
    title = directory
    if run is not None:
        batches = [each for each in batches if each.run == run]
        title = f"{directory}, run {run}"
        if not batches:
            raise ConfigurationError(
                f"--run {run}: {directory} has no batch of this run; a page without "
                "--run lists the latest runs"
            )
    for problem in stored.problems:
        sys.stderr.write(f"pipeline: {problem}\n")
    page = make_page(
        batches, title=title, made_at=datetime.now(UTC), problems=stored.problems
    )
    replace_local_file(path, page.encode())
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {PAGE}",
        description="Make an HTML page of the batches in a pipeline's directory: "
        "rates, lag and backlog, latency, redeliveries, and reasons of quarantine. The "
        "pipeline can run meanwhile.",
    )
    add = parser.add_argument
    add("directory", metavar="DIRECTORY", help="the directory of --into, or its URL")
    add("--run", metavar="ID", help="only this run (all runs)")
    add("--output", metavar="FILE", help=f"(DIRECTORY/{FILE_NAME})")
    return parser
