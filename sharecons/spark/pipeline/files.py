"""Files below one directory, on any file system of Hadoop.

Names are relative to the directory, with `/` between their parts. Files and directories
whose names begin with `.` or `_` are left out of lists, as readers of Parquet do.
"""

import os
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sharecons.spark.pipeline.errors import PublishError

__all__ = ["Files", "replace_local_file"]

OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs"})
"""Schemes of stores in which a written file appears whole, and renaming copies."""


class Files:
    """Moves, lists and replaces files.

    Args:
        spark: the Spark session, whose Hadoop configuration is used.
        root: the URL of the directory.
    """

    def __init__(self, spark: Any, root: str) -> None:
        self._jvm = spark._jvm
        self._conf = spark._jsc.hadoopConfiguration()
        self._root = root.rstrip("/")
        self._files = self._path("").getFileSystem(self._conf)
        self._scheme = urlsplit(self._root).scheme or "file"

    def url(self, name: str) -> str:
        """Return the URL of a file or directory."""
        return f"{self._root}/{name}" if name else self._root

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.url(name))

    def exists(self, name: str) -> bool:
        return bool(self._files.exists(self._path(name)))

    def list_directories(self, name: str) -> list[str]:
        """Return the names of the directories in a directory, if it exists."""
        if not self.exists(name):
            return []
        found = self._files.listStatus(self._path(name))
        return [each.getPath().getName() for each in found if each.isDirectory()]

    def list_files(self, name: str) -> list[str]:
        """Return the names of all files below a directory, relative to it, in order."""
        if not self.exists(name):
            return []
        start = len(str(self._files.makeQualified(self._path(name)).toString())) + 1
        entries = self._files.listFiles(self._path(name), True)
        found = []
        while entries.hasNext():
            relative = str(entries.next().getPath().toString())[start:]
            if not any(part[0] in "._" for part in relative.split("/")):
                found.append(relative)
        return sorted(found)

    def move(self, source: str, target: str) -> None:
        """Rename a file, unless it was renamed before.

        Raises:
            PublishError: neither file exists, or renaming failed.
        """
        old, new = self._path(source), self._path(target)
        if self._files.exists(new):
            # A store that copies can be interrupted between the copy and the deletion.
            self._files.delete(old, False)
            return
        cause = None
        try:
            self._files.mkdirs(new.getParent())
            self._files.rename(old, new)
        except Exception as error:  # noqa: BLE001 (a file system returns False or raises)
            cause = error
        if not self._files.exists(new):
            raise PublishError(
                f"{self.url(source)} cannot be renamed to {self.url(target)}; check "
                "the permissions, and that nothing else writes to this directory"
            ) from cause

    def sync(self, names: Iterable[str]) -> None:
        """Make files on a local disk durable, with their names.

        Hadoop does not: after a power failure a file could be empty or missing. Other
        file systems write a file when it is closed.
        """
        if self._scheme != "file" or os.name == "nt":
            return
        for name in names:
            path = str(self._path(name).toUri().getPath())
            _sync(path)
            _sync(os.path.dirname(path))

    def remove(self, name: str) -> None:
        """Delete a file or a directory, if it exists."""
        self._files.delete(self._path(name), True)

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None if it does not exist."""
        if not self.exists(name):
            return None
        stream = self._files.open(self._path(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def replace(self, name: str, data: bytes) -> None:
        """Write a small file; readers see the old one or the new one."""
        if self._scheme == "file":
            replace_local_file(url2pathname(urlsplit(self.url(name)).path), data)
        elif self._scheme in OBJECT_STORES:
            self._write(name, data)
        else:
            directory, _, last = name.rpartition("/")
            draft = f"{directory}/.{last}" if directory else f".{last}"
            self._write(draft, data)
            hadoop = self._jvm.org.apache.hadoop.fs
            options = self._overwrite(hadoop)
            context = hadoop.FileContext.getFileContext(
                self._files.getUri(), self._conf
            )
            context.rename(self._path(draft), self._path(name), options)

    def _overwrite(self, hadoop: Any) -> Any:
        rename = getattr(hadoop, "Options$Rename")
        options = self._jvm.java.lang.reflect.Array.newInstance(
            rename.OVERWRITE.getClass(), 1
        )
        options[0] = rename.OVERWRITE
        return options

    def _write(self, name: str, data: bytes) -> None:
        stream = self._files.create(self._path(name), True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_local_file(path: str, data: bytes) -> None:
    """Write a file on this machine; readers see the old one or the new one."""
    # Hadoop's rename on a local disk deletes the old file first.
    directory, name = os.path.split(path)
    os.makedirs(directory, exist_ok=True)
    draft = os.path.join(directory, f".{name}.draft")
    with open(draft, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
