"""A lock on one machine for each `load()`, whichever place keeps the ledger.

Spark plans a `load()` in processes of one JVM. An object store has no locks, so the
second process would take the ledger over from the first.
"""

import hashlib
import os
import platform
import sys
import tempfile
import time
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final, final

from sharecons.errors import ClosedError
from sharecons.log import get_logger
from sharecons.spark.errors import LedgerTakenError

__all__ = ["LoadLock"]

RETRY: Final = 0.1

_log = get_logger(__name__)


@final
class LoadLock:
    """Lets one process at a time acquire for a `load()`. Windows has no such lock."""

    def __init__(self, load_id: str, *, patience: float = inf) -> None:
        """`patience` is how long `acquire` waits for the other process, in seconds."""
        owner = os.getuid() if sys.platform != "win32" else ""
        name = hashlib.sha256(load_id.encode()).hexdigest()[:32]
        self._path = Path(tempfile.gettempdir()) / f".sharecons-{owner}-{name}.lock"
        self._patience = patience
        self._handle: int | None = None

    def acquire(self) -> None:
        """Wait until no other process acquires for this load.

        Raises:
            LedgerTakenError: one still does after `patience` seconds.
            ClosedError: Spark ended meanwhile.
        """
        parent = os.getppid()
        deadline = time.monotonic() + self._patience
        while (other := self._try()) is not None:
            if time.monotonic() >= deadline:
                raise LedgerTakenError(
                    f"{other} already reads the stream of this load(): one query uses "
                    "it twice (a self-join or self-union), or two queries use it, or "
                    "the query before this one has not ended; join and union inside "
                    "foreachBatch, and give each query a load(), a share group and a "
                    "ledgerLocation of its own"
                )
            if os.getppid() != parent:
                raise ClosedError("Spark ended while another process planned this load")
            time.sleep(RETRY)

    def release(self) -> None:
        """Let the next process acquire; may be repeated."""
        if self._handle is not None:
            # Under the lock: a process that opened this file before looks again.
            with suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._handle = None

    def _try(self) -> str | None:
        """Take the lock and return None, or return a description of its holder."""
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
            other = os.read(handle, 1000).decode(errors="replace")
            os.close(handle)
            return other or "another process"
        except OSError as error:
            os.close(handle)
            self._warn(error)
            return None
        if not self._is_current(handle):
            os.close(handle)
            return "another process"
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
        self._handle = handle
        return None

    def _warn(self, error: OSError) -> None:
        # The numbers of entries still keep two drivers apart.
        _log.warning("no lock for this load", path=str(self._path), reason=str(error))

    def _open(self) -> int:
        # Others may write to the directory: a link of theirs is not followed.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        return os.open(self._path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)

    def _is_current(self, handle: int) -> bool:
        """Tell whether the path still names the locked file."""
        try:
            there = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(handle))
