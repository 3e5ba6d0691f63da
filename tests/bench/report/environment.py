"""Last section of a page: date, machine, versions and settings."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from tests.bench.report.tables import WIDTH, markdown_table

__all__ = ["environment_section"]


def environment_section(sessions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Environment"
    yield ""
    for session in sessions:
        yield f"Measured on {session['begun'].replace('T', ', ')}."
        yield ""
        rows = [[name, value or "-"] for name, value in session["machine"].items()]
        yield from markdown_table(["item", "value"], rows)
        settings = session["settings"].items()
        text = ", ".join(f"{name} {_setting(value)}" for name, value in settings)
        yield from wrap(f"Settings: {text}.", WIDTH)
        yield ""


def _setting(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
