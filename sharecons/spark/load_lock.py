"""A lock on the driver's machine for each `load()`, for all kinds of storage.

Spark plans a `load()` in processes of one JVM. An object store has no locks, so without
this the second process would take the ledger over from the first. The lock file
contains the process that holds it, and the address at which readers of a stream attach.
"""

import hashlib
import os
import platform
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, final

from sharecons.errors import ClosedError
from sharecons.log import get_logger

__all__ = ["Address", "Holder", "LoadLock"]

RETRY: Final = 0.1

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock.

    Attributes:
        address: where other readers attach; None while the holder opens the ledger.
    """

    name: str = "another process"
    address: "Address | None" = None


class Address(NamedTuple):
    """A port of this machine, and the token that a reader sends there."""

    port: int
    token: str


@final
class LoadLock:
    """Lets one process at a time acquire for a `load()`. Does nothing on Windows."""

    def __init__(self, load_id: str) -> None:
        owner = os.getuid() if sys.platform != "win32" else ""
        name = hashlib.sha256(load_id.encode()).hexdigest()[:32]
        self._path = Path(tempfile.gettempdir()) / f".sharecons-{owner}-{name}.lock"
        self._handle: int | None = None

    def acquire(self) -> None:
        """Wait for the lock.

        Raises:
            ClosedError: Spark's process has ended in the meantime.
        """
        parent = os.getppid()
        while self.try_acquire() is not None:
            if os.getppid() != parent:
                raise ClosedError("Spark ended while another process planned this load")
            time.sleep(RETRY)

    def publish(self, address: Address) -> None:
        """Write the address of this process's query to the lock file."""
        if self._handle is not None:
            os.write(self._handle, f"\n{address.port} {address.token}\n".encode())

    def release(self) -> None:
        """Release the lock; can be repeated."""
        if self._handle is not None:
            # Under the lock: a process that has opened this file notices the removal
            # (`_is_current`) and opens the next one.
            with suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._handle = None

    def try_acquire(self) -> Holder | None:
        """Take the lock and return None, or return its holder."""
        if sys.platform == "win32" or self._handle is not None:
            return None
        import fcntl

        try:
            handle = self._open()
        except OSError as error:
            self._warn(error)
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _parse_holder(os.read(handle, 1000))
            os.close(handle)
            return holder
        except OSError as error:
            os.close(handle)
            self._warn(error)
            return None
        if not self._is_current(handle):
            os.close(handle)
            return Holder()
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
        self._handle = handle
        return None

    def _warn(self, error: OSError) -> None:
        # The entries' numbers still exclude a second driver.
        _log.warning(
            "continuing without a lock for this load()",
            path=str(self._path),
            reason=str(error),
        )

    def _open(self) -> int:
        # Other users can write to the directory, so symbolic links are not followed.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        return os.open(self._path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)

    def _is_current(self, handle: int) -> bool:
        """Return whether the path still refers to the locked file."""
        try:
            current = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(current, os.fstat(handle))


def _parse_holder(written: bytes) -> Holder:
    """Parse a lock file, which its holder might still be writing."""
    name, *lines = written.decode(errors="replace").split("\n")
    if len(lines) < 2:
        return Holder(name or Holder().name)
    port, _, token = lines[0].partition(" ")
    return Holder(name, Address(int(port), token))
