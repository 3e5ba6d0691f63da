"""Watches the working directory for changed files; needs the package watchfiles."""

from collections.abc import AsyncIterator
from pathlib import Path

from watchfiles import awatch

__all__ = ["watch_directory"]


async def watch_directory(directory: Path) -> AsyncIterator[frozenset[str]]:
    """Yield the names of changed files, some 50 ms after the last of several changes.

    Leaves out hidden directories such as `.git`, caches, virtual environments and
    files of editors.
    """
    async for changes in awatch(directory):
        yield frozenset(_name(path, directory) for _, path in changes)


def _name(path: str, directory: Path) -> str:
    found = Path(path)
    return str(
        found.relative_to(directory) if found.is_relative_to(directory) else found
    )
