"""The lines of a file that a process is perhaps writing, or was killed at."""

from pathlib import Path


def complete_lines(path: Path) -> list[str]:
    """Return the lines that have their line end; none of a file that does not exist.

    A kill or a full page can cut a write in two, however short it is.
    """
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()
