"""Watches the working directory for changed modules; needs the package watchfiles.

Only files of Python count: an application that writes a log file into its working
directory would be restarted without end.
"""

from collections.abc import AsyncIterator
from logging import WARNING, getLogger
from pathlib import Path
from typing import Final

from watchfiles import PythonFilter, awatch

from sharecons.errors import Error

__all__ = ["WatchError", "watch_directory"]

MAX_WAIT: Final = 500
"""Milliseconds for which a thread waits for changes, even if it is cancelled."""


class WatchError(Error):
    """The working directory cannot be watched."""


async def watch_directory(directory: Path) -> AsyncIterator[frozenset[str]]:
    """Yield the names of changed files, some 50 ms after the last of several changes.

    Leaves out hidden directories such as `.git`, caches and virtual environments.

    Raises:
        WatchError: the directory cannot be watched, for example because of a limit of
            the system.
    """
    # It logs each change, as the supervisor does.
    getLogger("watchfiles").setLevel(WARNING)
    changes = awatch(directory, watch_filter=PythonFilter(), rust_timeout=MAX_WAIT)
    while True:
        try:
            changed = await anext(changes)
        except StopAsyncIteration:
            return
        except OSError as error:
            raise WatchError(f"--reload: cannot watch {directory}: {error}") from error
        yield frozenset(_name(path, directory) for _, path in changed)


def _name(path: str, directory: Path) -> str:
    found = Path(path)
    return str(
        found.relative_to(directory) if found.is_relative_to(directory) else found
    )
