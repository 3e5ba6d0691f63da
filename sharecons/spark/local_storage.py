"""A ledger's directory on this machine, or on a mount that supports hard links."""

import os
import sys
from pathlib import Path
from uuid import uuid4

from sharecons.spark.errors import LedgerError

__all__ = ["LocalStorage"]


class LocalStorage:
    """Files that get their names when they are complete and synced to disk.

    Args:
        creates: whether to create the directory.
    """

    def __init__(self, directory: Path, *, creates: bool = True) -> None:
        self._directory = directory
        self._creates = creates
        self._lock: int | None = None

    def list_names(self) -> list[str]:
        if self._creates:
            self._create_directory()
        elif not self._directory.is_dir():
            return []
        return [name for name in os.listdir(self._directory) if name[0] != "."]

    def _create_directory(self) -> None:
        path = self._directory.absolute()
        missing = [one for one in (path, *path.parents) if not one.is_dir()]
        path.mkdir(parents=True, exist_ok=True)
        for directory in missing:
            _sync_directory(directory.parent)

    def read(self, name: str) -> bytes:
        return (self._directory / name).read_bytes()

    def create(self, name: str, data: bytes) -> None:
        # If a crash left a half-written file under the final name, it would look like
        # a damaged entry. So the file gets its name once it is complete.
        draft = self._directory / f".{name}.{uuid4().hex}"
        try:
            with open(draft, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _publish(draft, self._directory / name)
        finally:
            draft.unlink(missing_ok=True)
        _sync_directory(self._directory)

    def remove(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)

    def lock(self, owner: str) -> str | None:
        if sys.platform == "win32" or self._lock is not None:
            return None
        import fcntl

        self._create_directory()
        path = self._directory / ".driver"
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.read(handle, 1000).decode(errors="replace")
            os.close(handle)
            return other or "an unnamed process"
        except OSError:
            # A mount without locks; the entries' numbers still exclude a second driver.
            os.close(handle)
            return None
        self._remove_drafts()
        os.truncate(handle, 0)
        os.write(handle, owner.encode())
        self._lock = handle
        return None

    def _remove_drafts(self) -> None:
        """Remove the drafts of killed drivers; called while the lock is held."""
        for pattern in (".*.jsonl.*", ".*.finished.*"):
            for draft in self._directory.glob(pattern):
                draft.unlink(missing_ok=True)

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _publish(draft: Path, final: Path) -> None:
    if sys.platform == "win32":
        # On Windows this fails if the name exists.
        os.rename(draft, final)
        return
    try:
        os.link(draft, final)
    except FileExistsError:
        raise
    except OSError as error:
        raise LedgerError(
            f"the ledger in {final.parent} cannot be written: making a hard link "
            f"failed ({error.strerror}); use a file system that supports hard links"
        ) from error


def _sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    if sys.platform == "win32":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
