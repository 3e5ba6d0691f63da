"""When it was measured, on what and how: the end of a page."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from tests.bench.report.tables import WIDTH, aligned

__all__ = ["on_what"]


def on_what(sessions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## On what"
    yield ""
    for session in sessions:
        yield f"Measured on {session['begun'].replace('T', ', ')}."
        yield ""
        rows = [[name, value or "-"] for name, value in session["machine"].items()]
        yield from aligned(["what", "which"], rows)
        settings = session["settings"].items()
        told = ", ".join(f"{name} {_setting(value)}" for name, value in settings)
        yield from wrap(f"Settings: {told}.", WIDTH)
        yield ""


def _setting(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
