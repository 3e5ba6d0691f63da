"""Cached directories, shared by any number of processes.

A directory appears under its name only when it is complete: it is created under another
name and renamed. If two processes create one at the same time, both do the work, and
the second one deletes its own.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sharecons.testing.kafka.errors import LaunchError

__all__ = ["cached_directory"]


def cached_directory(name: str, make: Callable[[Path], None]) -> Path:
    """Return the directory of that name; if there is none, `make` fills a new one.

    Raises:
        LaunchError: no cache directory is writable.
    """
    for directory in _directories():
        if (directory / name).is_dir():
            return directory / name
    return _create(_writable_directory(), name, make)


def _directories() -> Iterator[Path]:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):  # without a home directory "~" is not expanded
        yield Path(home) / "sharecons"
    yield from _temporary_directory()


def _temporary_directory() -> Iterator[Path]:
    """Yield a directory for users whose home is not writable.

    All users can write to the temporary directory: a directory of another user there
    can contain malicious jars.
    """
    directory = Path(tempfile.gettempdir()) / f"sharecons-{os.getuid()}"
    if not directory.exists() or directory.stat().st_uid == os.getuid():
        yield directory


def _writable_directory() -> Path:
    errors = []
    for directory in _directories():
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=directory).close()
        except OSError as error:
            errors.append(f"{directory}: {error.strerror}")
        else:
            return directory
    raise LaunchError(
        f"no cache directory for Kafka's jars is writable: {'; '.join(errors)}. "
        "Set XDG_CACHE_HOME to another directory"
    )


def _create(directory: Path, name: str, make: Callable[[Path], None]) -> Path:
    staging = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=directory))
    try:
        new = staging / name
        new.mkdir()
        make(new)
        return _publish(new, directory / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _publish(fresh: Path, target: Path) -> Path:
    try:
        fresh.rename(target)
    except OSError:
        # Another process was faster, if the directory exists.
        if not target.is_dir():
            raise
    return target
