"""Clocks of processes that jump, by libfaketime.

Debian and Ubuntu have it in the package `faketime`. A process reads the offset of its
clocks from a file each time. `monotonic_ns` is the clock of the machine,
which does not jump.
"""

import ctypes
import os
import platform
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = ["ProcessClock", "find_library", "monotonic_ns"]

DIRECTORIES: Final = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/homebrew/lib")
CLOCK_GETTIME: Final = {"x86_64": 228, "aarch64": 113}
"""Numbers of the system call, which libfaketime does not replace."""


class ProcessClock:
    """The clocks of one process, and of its successors.

    Args:
        file: has the offset.
        has_monotonic: CLOCK_MONOTONIC has the offset as well. It must only grow.
    """

    def __init__(self, library: Path, file: Path, *, has_monotonic: bool) -> None:
        self._library = library
        self._file = file
        self.has_monotonic = has_monotonic
        self.offset = 0
        self.set(0)

    def set(self, seconds: int) -> None:
        """Set the offset; the file is never half-written."""
        self.offset = seconds
        written = self._file.with_suffix(".new")
        written.write_text(f"{seconds:+d}\n")
        written.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the process."""
        only_wall = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "NO_FAKE_STAT": "1",
            **({} if self.has_monotonic else only_wall),
        }


@cache
def find_library(directories: Sequence[str] = DIRECTORIES) -> Path | None:
    """Return libfaketime's library for processes with threads, or None."""
    for directory in map(Path, directories):
        for pattern in ("faketime/libfaketimeMT.so.1", "*/faketime/libfaketimeMT.so.1"):
            for found in sorted(directory.glob(pattern)):
                return found
    return None


def monotonic_ns(environment: Mapping[str, str] = os.environ) -> int:
    """Return CLOCK_MONOTONIC of the machine, in nanoseconds."""
    if "FAKETIME_TIMESTAMP_FILE" not in environment:
        return time.monotonic_ns()
    now = _TimeSpec()
    number = CLOCK_GETTIME[platform.machine()]
    _libc().syscall(number, time.CLOCK_MONOTONIC, ctypes.byref(now))
    return now.seconds * 1_000_000_000 + now.nanoseconds


class _TimeSpec(ctypes.Structure):
    seconds: int
    nanoseconds: int
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)
