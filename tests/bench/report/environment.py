"""Last section of a page: date, machine, versions and settings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.bench.report.tables import head, markdown_table, paragraph

__all__ = ["environment_section"]


def environment_section(sessions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from head("Environment")
    for session in sessions:
        yield f"Measured on {session['begun'].replace('T', ', ')}."
        yield ""
        rows = [[name, value or "-"] for name, value in session["machine"].items()]
        yield from markdown_table(["item", "value"], rows)
        settings = session["settings"].items()
        text = ", ".join(f"{name} {_setting(value)}" for name, value in settings)
        yield from paragraph(f"Settings: {text}.")


def _setting(value: object) -> str:
    """Return a value as on the command line; a case of `large` is a list in JSON."""
    if not isinstance(value, list):
        return str(value)
    return " ".join(
        ":".join(map(str, each)) if isinstance(each, list) else str(each)
        for each in value
    )
