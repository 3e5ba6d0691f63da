"""Stores the files of a ledger: in a local directory, an object store, or on HDFS.

A ledger needs a file system that creates files atomically: if two processes create a
file of the same name, one gets FileExistsError, and a file is complete from the moment
at which it exists.

    a path, file:    a hard link to a finished file, which fails if the name exists
    s3:, s3a:        If-None-Match (s3fs 2024.12 or newer)
    gs:, gcs:        ifGenerationMatch=0 (gcsfs)
    abfs:, abfss:, az:   If-None-Match (adlfs)
    hdfs:            a rename, which fails if the name exists (pyarrow)
    memory:          fsspec's; for tests, as it ends with the process

Other file systems are rejected. If a file system first checks and then writes, two
drivers can write the same entry, and records would be read twice.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sharecons.errors import ConfigurationError
from sharecons.spark.local_storage import LocalStorage
from sharecons.spark.remote_storage import (
    ATOMIC_SCHEMES,
    ObjectStorage,
    open_hdfs_storage,
)

__all__ = ["ReadableStorage", "Storage", "open_storage"]


class ReadableStorage(Protocol):
    """A directory of small files."""

    def list_names(self) -> list[str]: ...

    def read(self, name: str) -> bytes: ...


class Storage(ReadableStorage, Protocol):
    """A directory of small files that are written once."""

    def create(self, name: str, data: bytes) -> None:
        """Write a file; it is durable when this returns.

        Raises:
            FileExistsError: the name exists; nothing was written.
        """

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""

    def lock(self, owner: str) -> str | None:
        """Lock the directory for this process, if the storage has locks.

        Args:
            owner: describes this process to others that try to lock it.

        Returns:
            None, or the owner that holds the lock.
        """

    def unlock(self) -> None: ...


def open_storage(
    location: str, options: Mapping[str, Any] | None = None, *, creates: bool = True
) -> Storage:
    """Return the storage for a path or URL.

    Args:
        location: a path, in which `~` is expanded as in a shell, or a URL.
        options: arguments of the fsspec file system.
        creates: whether to create a directory that does not exist.

    Raises:
        ConfigurationError: the file system cannot store a ledger, or the home
            directory does not exist.
    """
    scheme, path = _split_location(location)
    if scheme == "file":
        return LocalStorage(Path(path), creates=creates)
    if scheme == "hdfs":
        return open_hdfs_storage(location, creates=creates)
    if scheme in ATOMIC_SCHEMES:
        return ObjectStorage(scheme, location, dict(options or {}))
    known = ", ".join(("file", "hdfs", *ATOMIC_SCHEMES))
    raise ConfigurationError(
        f"ledgerLocation {location!r}: a ledger cannot be stored in {scheme!r}, which "
        f"is not known to create files atomically; use one of {known}"
    )


def _split_location(location: str) -> tuple[str, str]:
    if not isinstance(location, str) or not location.strip():
        raise ConfigurationError(
            f"ledgerLocation must be a directory or URL, not {location!r}"
        )
    parts = urlsplit(location)
    # A single letter is a Windows drive.
    if len(parts.scheme) < 2:
        return "file", _expand_home(location)
    if parts.scheme == "file":
        return "file", url2pathname(parts.path)
    return parts.scheme, parts.path


def _expand_home(path: str) -> str:
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise ConfigurationError(
            f"ledgerLocation {path!r}: this home directory does not exist; write "
            f"./{path} for a directory whose name begins with ~"
        )
    return expanded
