"""A process that outlives this one and cleans up after it.

However this process ends, SIGKILL included, the system closes its pipe to the cleanup
process, which then kills the brokers and removes their data. (PR_SET_PDEATHSIG is not
enough: it fires when the *thread* that started a broker ends, and only on Linux.)
"""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["CleanupProcess"]

# Its commands are "kill 123", "spare 123" and "remove /a/directory".
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


class CleanupProcess:
    """Kills processes and removes directories when this process ends or closes it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # no Ctrl-C from the terminal
        )

    def kill(self, process: int) -> None:
        self._send("kill", process)

    def spare(self, process: int) -> None:
        """Do not kill a process that has ended: its id can be reused."""
        self._send("spare", process)

    def remove(self, directory: Path) -> None:
        self._send("remove", directory)

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._process.communicate()

    def _send(self, verb: str, what: int | Path) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the cleanup process was killed: continue
            self._process.stdin.write(f"{verb} {what}\n")
            self._process.stdin.flush()
