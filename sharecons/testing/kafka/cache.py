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

__all__ = ["cached"]


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """Return the directory of that name; if there is none, `make` fills a new one.

    Raises:
        LaunchError: no cache directory is writable.
    """
    for place in _places():
        if (place / name).is_dir():
            return place / name
    return _made(_writable_place(), name, make)


def _places() -> Iterator[Path]:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):  # without a home directory "~" is not expanded
        yield Path(home) / "sharecons"
    yield from _temporary_place()


def _temporary_place() -> Iterator[Path]:
    """Yield a directory for users whose home is not writable.

    All users may write to the temporary directory: a directory of another user there
    may contain malicious jars.
    """
    place = Path(tempfile.gettempdir()) / f"sharecons-{os.getuid()}"
    if not place.exists() or place.stat().st_uid == os.getuid():
        yield place


def _writable_place() -> Path:
    refusals = []
    for place in _places():
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place).close()
        except OSError as error:
            refusals.append(f"{place}: {error.strerror}")
        else:
            return place
    raise LaunchError(
        f"no cache directory for Kafka's jars is writable: {'; '.join(refusals)}. "
        "Set XDG_CACHE_HOME to another directory"
    )


def _made(place: Path, name: str, make: Callable[[Path], None]) -> Path:
    staging = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=place))
    try:
        fresh = staging / name
        fresh.mkdir()
        make(fresh)
        return _published(fresh, place / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _published(fresh: Path, target: Path) -> Path:
    try:
        fresh.rename(target)
    except OSError:
        # Another process was faster, if the directory exists.
        if not target.is_dir():
            raise
    return target
