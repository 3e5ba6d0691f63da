"""The standstills of docs/stuck.md: each outlet shows what the page has."""

import re
from pathlib import Path

import pytest

from tests.logged_events import ROOT
from tests.standstills import CASES, Case, measure, started

PAGE = (ROOT / "docs/stuck.md").read_text()
HEADING = "| standstill | `inspect` |"
OUTLETS = ("inspect", "check", "readyz", "exporter", "log", "dashboard")
"""The fields of a row in the order of the columns."""


def rows() -> dict[str, list[str]]:
    """Return the cells of the first table, by the name of the standstill."""
    lines = PAGE[PAGE.index(HEADING) :].split("\n\n")[0].splitlines()[2:]
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {name: rest for name, *rest in cells}


def test_page_has_each_standstill_in_both_tables() -> None:
    names = [case.name for case in CASES]

    assert names == list(rows())
    assert all(PAGE.count(f"\n| {name} |") == 2 for name in names)


MANY = (pytest.mark.thorough,)
"""Of a standstill that takes 20,000 records."""


@pytest.mark.slow("a lock ends in real time, and `sharecons run` starts")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=MANY if case.name == "hot keys" else ())
        for case in CASES
    ],
)
def test_outlets_show_what_the_page_has(case: Case, tmp_path: Path) -> None:
    with started("embedded") as cluster:
        row = measure(cluster, case, tmp_path)

    cells = dict(zip(OUTLETS, map(texts_of, rows()[case.name]), strict=True))
    cells["overview"] = cells["dashboard"][:1]
    cells["workers"] = ["ready" if cells["readyz"] == ["ok"] else cells["readyz"][0]]
    for outlet, texts in cells.items():
        shown = getattr(row, outlet)
        assert [text for text in texts if text not in shown] == [], shown
    if row.check == "0":
        pages = f"{row.dashboard} {row.overview} {row.workers}"
        assert not re.search("stalled|warning|not ready", pages), pages


def texts_of(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell) or [cell]
