"""A process that outlives ours, if only to clean up after it.

However this process ends, SIGKILL included, the system closes its pipe to the
guard, and the guard then kills the brokers and removes their data. (Linux's
PR_SET_PDEATHSIG would not do: it fires when the *thread* that started a broker
ends, and only on Linux.)
"""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["Guard"]

# It hears "kill 123", "spare 123", "remove /a/directory".
PROGRAM: Final = """
import os, shutil, sys
processes, directories = set(), set()
for line in sys.stdin:
    verb, _, what = line.rstrip("\\n").partition(" ")
    if verb == "kill":
        processes.add(int(what))
    elif verb == "spare":
        processes.discard(int(what))
    elif verb == "remove":
        directories.add(what)
for process in processes:
    try:
        os.kill(process, 9)
    except OSError:
        pass
for directory in directories:
    shutil.rmtree(directory, ignore_errors=True)
"""


class Guard:
    """Ends what it was told of as soon as this process ends, or closes it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # a Ctrl-C is ours to handle, not the guard's
        )

    def kill(self, process: int) -> None:
        self._say("kill", process)

    def spare(self, process: int) -> None:
        """Forget a process that has been waited for: its id may be another's soon."""
        self._say("spare", process)

    def remove(self, directory: Path) -> None:
        self._say("remove", directory)

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._process.communicate()

    def _say(self, verb: str, what: int | Path) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # someone ended the guard: go on without it
            self._process.stdin.write(f"{verb} {what}\n")
            self._process.stdin.flush()
