"""Where the files of a ledger lie: a local directory, an object store, HDFS.

What a ledger needs of a file system is one thing: that of two who create a file of one
name, one is told FileExistsError, and that the file is whole from the moment it is
there. That is what decides which ones will do.

    a path, file:    a hard link to a finished file; fails if the name is taken
    s3:, s3a:        If-None-Match (s3fs 2024.12 or newer)
    gs:, gcs:        ifGenerationMatch=0 (gcsfs)
    abfs:, abfss:, az:   If-None-Match (adlfs)
    hdfs:            a rename, which fails if the name is taken (pyarrow)
    memory:          fsspec's; for tests, since it ends with the process

Anything else is refused: a file system that looks first and writes then lets two
drivers write the same number, and records would be read twice.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sharecons.errors import ConfigurationError
from sharecons.spark.local_storage import LocalStorage
from sharecons.spark.remote_storage import SAFE, ObjectStorage, hdfs_storage

__all__ = ["Storage", "storage_of"]


class Storage(Protocol):
    """A directory of small files that are written once."""

    def names(self) -> list[str]: ...

    def read(self, name: str) -> bytes: ...

    def create(self, name: str, data: bytes) -> None:
        """Write a file so that it outlives this machine.

        Raises:
            FileExistsError: the name is taken; nothing was written.
        """

    def remove(self, name: str) -> None:
        """Delete a file; one that is gone already is nothing to mention."""

    def lock(self, who: str) -> str | None:
        """Keep others out while this process lives, where the place can do that.

        Returns None, or what the one who is in there said of itself.
        """

    def unlock(self) -> None: ...


def storage_of(location: str, options: Mapping[str, Any] | None = None) -> Storage:
    """Find the place that a path or URL means; `options` go to its file system.

    `~` at the beginning of a path is a home directory, as in a shell.

    Raises:
        ConfigurationError: such a file system cannot keep a ledger, or there is no
            such home directory.
    """
    scheme, path = _split(location)
    if scheme == "file":
        return LocalStorage(Path(path))
    if scheme == "hdfs":
        return hdfs_storage(location)
    if scheme in SAFE:
        return ObjectStorage(scheme, location, dict(options or {}))
    known = ", ".join(("file", "hdfs", *SAFE))
    raise ConfigurationError(
        f"ledgerLocation {location!r}: a ledger cannot be kept in {scheme!r}, which "
        f"has no atomic create that is known here; use one of {known}"
    )


def _split(location: str) -> tuple[str, str]:
    if not isinstance(location, str) or not location.strip():
        raise ConfigurationError(
            f"ledgerLocation must be a directory or URL, not {location!r}"
        )
    parts = urlsplit(location)
    # A single letter is a drive of Windows.
    if len(parts.scheme) < 2:
        return "file", _expanded(location)
    if parts.scheme == "file":
        return "file", url2pathname(parts.path)
    return parts.scheme, parts.path


def _expanded(path: str) -> str:
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise ConfigurationError(
            f"ledgerLocation {path!r}: there is no home directory of that name; write "
            f"./{path} for a directory whose own name begins with ~"
        )
    return expanded
