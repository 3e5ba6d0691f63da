"""The standstills of docs/standstills.md: each outlet shows what the page has."""

import re
from pathlib import Path

import pytest

from tests.logged_events import ROOT
from tests.standstills import CASES, Case, measure, started

PAGE = (ROOT / "docs/standstills.md").read_text()
HEADING = "| standstill | `inspect` |"


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

    for shown, cell in zip(row[1:], rows()[case.name], strict=True):
        expected = re.findall("`([^`]+)`", cell) or [cell]
        assert [text for text in expected if text not in shown] == [], shown
