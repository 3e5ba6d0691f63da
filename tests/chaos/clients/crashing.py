"""Records that end their process."""

import ctypes
import os
import resource
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

__all__ = ["EXIT", "crash"]

EXIT: Final = 9
"""The exit code of the plan "exit"."""

ROOM: Final = 128 << 20
"""Bytes that a process can still allocate when a record begins to take them all."""

CHUNK: Final = 1 << 20


def crash(plan: str) -> None:
    """End the process as the plan says.

    Raises:
        MemoryError: of "memory", if the process survives: from now on it has a limit,
            as a container has, and this record has reached it.
    """
    WAYS[plan]()


def _exit() -> None:
    os._exit(EXIT)


def _kill() -> None:
    """Send SIGKILL to this process, as the kernel does to one that takes too much."""
    os.kill(os.getpid(), signal.SIGKILL)


def _segfault() -> None:
    ctypes.string_at(0)


def _fill_memory() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(
            resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, hard)
        )
    taken = []
    while True:
        taken.append(bytearray(CHUNK))


WAYS: Final[Mapping[str, Callable[[], None]]] = {
    "exit": _exit,
    "segfault": _segfault,
    "kill": _kill,
    "memory": _fill_memory,
}
