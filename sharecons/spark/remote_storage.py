"""A ledger's directory in an object store or on HDFS.

The list of schemes follows the sources of the fsspec packages. Older versions of these
packages overwrite existing files; the first write of each storage checks for that.
"""

import importlib
from contextlib import suppress
from errno import EINVAL
from typing import Any, Final
from uuid import uuid4

from sharecons.errors import ConfigurationError
from sharecons.spark.ledger_options import hide_secrets

__all__ = ["ATOMIC_SCHEMES", "ObjectStorage", "RenamingStorage", "open_hdfs_storage"]

ATOMIC_SCHEMES: Final = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "memory": "fsspec",
}
"""Schemes whose fsspec package creates files atomically, and that package."""


class ObjectStorage:
    """A prefix in an object store, accessed with its fsspec package."""

    def __init__(self, scheme: str, url: str, options: dict[str, Any]) -> None:
        self._files = _open_fsspec(scheme, url, options)
        self._path: str = self._files._strip_protocol(url).rstrip("/")
        self._is_checked = False

    def list_names(self) -> list[str]:
        # The package can cache listings.
        self._files.invalidate_cache()
        with suppress(FileNotFoundError):
            found = self._files.ls(self._path, detail=False)
            return [path.rsplit("/", 1)[-1] for path in found]
        return []

    def read(self, name: str) -> bytes:
        data: bytes = self._files.cat_file(f"{self._path}/{name}")
        return data

    def create(self, name: str, data: bytes) -> None:
        if not self._is_checked:
            self._check_atomic_create()
        self._create(name, data)

    def _create(self, name: str, data: bytes) -> None:
        try:
            self._files.pipe_file(f"{self._path}/{name}", data, mode="create")
        except FileExistsError:
            raise
        except OSError as error:
            # Some versions of s3fs raise this for "precondition failed".
            if error.errno == EINVAL and name in self.list_names():
                raise FileExistsError(name) from error
            raise

    def _check_atomic_create(self) -> None:
        """Check that `mode="create"` has an effect: old packages ignore it."""
        name = f".trial.{uuid4().hex}"
        self._create(name, b"first")
        try:
            self._create(name, b"second")
        except FileExistsError:
            self._is_checked = True
        finally:
            self.remove(name)
        if not self._is_checked:
            raise ConfigurationError(
                f"ledgerLocation {self._path!r}: the store overwrites files instead "
                "of rejecting existing names; install a newer s3fs, gcsfs or adlfs, or "
                "use an S3 store that supports If-None-Match"
            )

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._files.rm_file(f"{self._path}/{name}")

    def lock(self, owner: str) -> str | None:
        """Let everyone in: the numbers alone keep two drivers apart."""
        return None

    def unlock(self) -> None:
        """There is no lock."""


def _open_fsspec(scheme: str, url: str, options: dict[str, Any]) -> Any:
    try:
        fsspec = importlib.import_module("fsspec")
        files, _ = fsspec.core.url_to_fs(url, **options)
    except (ImportError, TypeError, ValueError) as error:
        # Not `from error`: its text can contain a secret.
        raise ConfigurationError(
            f"ledgerLocation {url!r}: {hide_secrets(str(error), options)}; install "
            f"{ATOMIC_SCHEMES[scheme]} on the driver, and check the ledger.* options"
        ) from None
    return files


def open_hdfs_storage(url: str, *, creates: bool = True) -> "RenamingStorage":
    """Return the storage for a directory on HDFS.

    pyarrow needs libhdfs and CLASSPATH for it.

    Raises:
        ConfigurationError: pyarrow or libhdfs is missing, or HDFS cannot be reached.
    """
    try:
        fs = importlib.import_module("pyarrow.fs")
        files, path = fs.FileSystem.from_uri(url)
    except (ImportError, OSError) as error:
        raise ConfigurationError(
            f"ledgerLocation {url!r}: {error}; HDFS needs pyarrow and a Hadoop client "
            "on the driver (libhdfs, and CLASSPATH set to the output of `hadoop "
            "classpath --glob`)"
        ) from error
    return RenamingStorage(files, path, creates=creates)


class RenamingStorage:
    """A directory of a pyarrow file system that never renames onto existing files.

    Args:
        creates: whether to create the directory.
    """

    def __init__(self, files: Any, path: str, *, creates: bool = True) -> None:
        self._files = files
        self._path = path
        self._creates = creates

    def list_names(self) -> list[str]:
        if self._creates:
            self._files.create_dir(self._path, recursive=True)
        selector = importlib.import_module("pyarrow.fs").FileSelector(
            self._path, allow_not_found=not self._creates
        )
        return [info.base_name for info in self._files.get_file_info(selector)]

    def read(self, name: str) -> bytes:
        with self._files.open_input_file(f"{self._path}/{name}") as file:
            data: bytes = file.read()
            return data

    def create(self, name: str, data: bytes) -> None:
        draft = f"{self._path}/.{name}.{uuid4().hex}"
        with self._files.open_output_stream(draft) as file:
            file.write(data)
        try:
            self._files.move(draft, f"{self._path}/{name}")
        except OSError as error:
            self._files.delete_file(draft)
            if name in self.list_names():
                raise FileExistsError(name) from error
            raise

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(f"{self._path}/{name}")

    def lock(self, owner: str) -> str | None:
        """Let everyone in: the numbers alone keep two drivers apart."""
        return None

    def unlock(self) -> None:
        """There is no lock."""
