"""Subprocesses that are killed when the block that started them ends."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from sharecons.testing.kafka.cleanup import CleanupProcess

__all__ = ["ProgramError", "parse_result", "run_program", "running_program"]

MAX_MESSAGE_LENGTH: Final = 300  # characters of a failed program's last line


class ProgramError(Exception):
    """A program failed; the message is its last line on stderr."""


@contextmanager
def running_program(
    command: Sequence[str], cleanup: CleanupProcess, stderr: Any = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """Run a program during the block, then kill it and its child processes.

    The program runs in its own session, so that Ctrl-C reaches only this process.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )
    cleanup.kill(process.pid)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        cleanup.spare(process.pid)


def run_program(
    command: Sequence[str],
    cleanup: CleanupProcess,
    timeout: float,
    watch: Callable[[subprocess.Popen[str]], None] = lambda _: None,
) -> str:
    """Run a program until it exits and return its standard output.

    Args:
        command: program and arguments.
        cleanup: kills the program if this process dies.
        timeout: seconds.
        watch: is called with the process; it can run until the process ends.

    Raises:
        ProgramError: the program failed or ran longer than the timeout.
    """
    with tempfile.TemporaryFile("w+") as stderr:
        with running_program(command, cleanup, stderr) as process:
            watch(process)
            try:
                output, _ = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                raise ProgramError(f"took longer than {timeout:g} s") from None
        if process.returncode:
            stderr.seek(0)
            lines = stderr.read().strip().splitlines() or [
                f"exit status {process.returncode}, no output"
            ]
            raise ProgramError(lines[-1][-MAX_MESSAGE_LENGTH:])
        return output


def parse_result(output: str) -> dict[str, Any]:
    """Decode the line of JSON at the end of a client program's output."""
    result: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return result
