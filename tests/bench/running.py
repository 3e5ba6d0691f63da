"""Processes that end with the block that started them, however it ends."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from sharecons.testing.kafka.cleanup import CleanupProcess

__all__ = ["FailedError", "finished", "measured", "started"]

LONGEST: Final = 300  # characters of what a program that failed said


class FailedError(Exception):
    """A program did not do its work; the message is the last that it said."""


@contextmanager
def started(
    command: Sequence[str], guard: CleanupProcess, said: Any = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """Run a program beside the block; with those that it starts, it ends there.

    In a session of its own, so that a Ctrl-C comes to us alone.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        start_new_session=True,
    )
    guard.kill(process.pid)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        guard.spare(process.pid)


def finished(
    command: Sequence[str],
    guard: CleanupProcess,
    patience: float,
    watch: Callable[[subprocess.Popen[str]], None] = lambda _: None,
) -> str:
    """Run a program to its end, and give what it printed; `watch` may look on.

    Raises:
        FailedError: it failed, or took longer than the patience.
    """
    with tempfile.TemporaryFile("w+") as said:
        with started(command, guard, said) as process:
            watch(process)
            try:
                printed, _ = process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                raise FailedError(f"took longer than {patience:g} s") from None
        if process.returncode:
            said.seek(0)
            lines = said.read().strip().splitlines() or ["it gave no reason"]
            raise FailedError(lines[-1][-LONGEST:])
        return printed


def measured(printed: str) -> dict[str, Any]:
    """Read the line of JSON that a client's program ends with."""
    result: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return result
