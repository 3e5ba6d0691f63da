"""A ledger's directory on this machine, or on a mount that knows hard links."""

import os
import sys
from pathlib import Path
from uuid import uuid4

from sharecons.spark.errors import LedgerError

__all__ = ["LocalStorage"]


class LocalStorage:
    """Files that have their names only when they are whole and on the disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock: int | None = None

    def names(self) -> list[str]:
        self._make()
        return [name for name in os.listdir(self._directory) if name[0] != "."]

    def _make(self) -> None:
        path = self._directory.absolute()
        missing = [one for one in (path, *path.parents) if not one.is_dir()]
        path.mkdir(parents=True, exist_ok=True)
        for directory in missing:
            _sync(directory.parent)

    def read(self, name: str) -> bytes:
        return (self._directory / name).read_bytes()

    def create(self, name: str, data: bytes) -> None:
        # A file of the final name that is half written, after a crash, could not be
        # told from a damaged one. So it gets its name when it is whole.
        draft = self._directory / f".{name}.{uuid4().hex}"
        try:
            with open(draft, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _publish(draft, self._directory / name)
        finally:
            draft.unlink(missing_ok=True)
        _sync(self._directory)

    def remove(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)

    def lock(self, who: str) -> str | None:
        if sys.platform == "win32" or self._lock is not None:
            return None
        import fcntl

        self._make()
        path = self._directory / ".driver"
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.read(handle, 1000).decode(errors="replace")
            os.close(handle)
            return other or "an unnamed process"
        except OSError:
            # A mount without locks. The numbers still keep two drivers apart.
            os.close(handle)
            return None
        self._sweep()
        os.truncate(handle, 0)
        os.write(handle, who.encode())
        self._lock = handle
        return None

    def _sweep(self) -> None:
        """Remove the drafts of drivers that were killed; nobody is writing now."""
        for draft in self._directory.glob(".*.jsonl.*"):
            draft.unlink(missing_ok=True)

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _publish(draft: Path, final: Path) -> None:
    if sys.platform == "win32":
        # Fails there if the name is taken.
        os.rename(draft, final)
        return
    try:
        os.link(draft, final)
    except FileExistsError:
        raise
    except OSError as error:
        raise LedgerError(
            f"the ledger in {final.parent} cannot be written: making a hard link "
            f"failed ({error.strerror}); use a file system that has them"
        ) from error


def _sync(directory: Path) -> None:
    """Make the names in a directory durable."""
    if sys.platform == "win32":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
