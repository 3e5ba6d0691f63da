"""The text of `sharecons groups inspect`: a picture on a terminal, or plain lines."""

import io
import sys
from typing import Final

from rich.console import Console

from sharecons.cli import output
from sharecons.inspection import GroupInspection
from sharecons.inspection.picture import GroupPicture

__all__ = ["terminal", "write"]

PLAIN_WIDTH: Final = 1_000_000
"""Characters of a line in a file or a pipe, so that no line is wrapped."""

PLAIN_BAR_WIDTH: Final = 40


def write(group: GroupInspection, *, offsets: bool) -> None:
    """Write an inspection to stdout; `offsets` lists ranges instead of bars."""
    if sys.stdout.isatty():
        # The command writes errors to stderr.
        terminal().print(
            GroupPicture(
                group=group,
                offsets=offsets,
                with_errors=False,
                encoding=output.encoding(),
            )
        )
        return
    _write_plain(
        GroupPicture(
            group=group,
            offsets=offsets,
            with_errors=False,
            encoding=output.encoding(),
            max_bar_width=PLAIN_BAR_WIDTH,
        )
    )


def terminal() -> Console:
    """Return a console that writes to stdout."""
    return Console(
        file=output.rich_stdout(), highlight=False, markup=False, emoji=False
    )


def _write_plain(picture: GroupPicture) -> None:
    text = io.StringIO()
    console = Console(
        file=text, width=PLAIN_WIDTH, color_system=None, highlight=False, markup=False
    )
    console.print(picture)
    for line in text.getvalue().rstrip("\n").split("\n"):
        output.write_line(line.rstrip())
