"""Directories that are made once and used ever after, by any number of processes.

A directory appears under its name only when it is whole: it is made beside its
place and renamed. Two processes that make one at once do the work twice, and
the second to finish throws its own away.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sharecons.testing.kafka.errors import LaunchError

__all__ = ["cached"]


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """Give the directory of that name; `make` fills a new one if there is none.

    Raises:
        LaunchError: no directory can be written to.
    """
    for place in _places():
        if (place / name).is_dir():
            return place / name
    return _made(_writable_place(), name, make)


def _places() -> Iterator[Path]:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):  # "~" stays where no user database knows us
        yield Path(home) / "sharecons"
    yield from _temporary_place()


def _temporary_place() -> Iterator[Path]:
    """Name a place for a home that cannot be written to.

    Everyone may write to the temporary directory: a directory there that is not
    ours may hold anyone's jars, and they would be run.
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
        "there is nowhere to keep Kafka's jars: "
        f"{'; '.join(refusals)}. Name a directory in XDG_CACHE_HOME"
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
        # Another process was quicker, if its directory is there.
        if not target.is_dir():
            raise
    return target
