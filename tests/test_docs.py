"""The documents and package docstrings match the code."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sharecons.protocol.group.states import TRANSITIONS

ROOT = Path(__file__).parent.parent
COMPARISON = ROOT / "docs" / "comparison.md"
SECURITY = (ROOT / "SECURITY.md").read_text()
DESIGN = (ROOT / "docs" / "design.md").read_text()


def test_diagram_of_membership_matches_the_table() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+) : ([\w ]+)$", DESIGN, re.MULTILINE)
    moves = [(s.name, to.name, h.value) for (s, h), to in TRANSITIONS.items()]

    assert moves == drawn


@pytest.mark.parametrize("page", ["design.md", "spark-design.md", "traces.md"])
def test_design_names_files_and_tests_that_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    functions = re.findall(r"`(test_\w+)`", text)
    paths = re.findall(r"`((?:[a-z_]+/)+(?:\w+\.py)?)`", text)
    modules = re.findall(r"`(\w+\.py)`", text)
    known = {path.name for path in (ROOT / "sharecons").rglob("*.py")} | {
        "hatch_build.py"
    }

    assert paths
    assert [name for name in modules if name not in known] == []
    assert [name for name in functions if f"def {name}(" not in tests] == []
    assert [
        path
        for path in paths
        if not any((base / path).exists() for base in (ROOT, ROOT / "sharecons"))
    ] == []


@pytest.mark.parametrize("page", ["concepts.md", "guarantees.md"])
def test_tests_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)

    assert named
    assert [
        f"{path}::{name}"
        for path, name in named
        if f"def {name}(" not in (ROOT / path).read_text()
    ] == []


def test_comparison_of_the_readme_has_the_cells_of_its_page() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text().replace("](../", "](")
    lines = (ROOT / "README.md").read_text().splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("|  | sharecons"))
    rows = lines[first : lines.index("", first)]

    assert [row for row in rows if row not in page.splitlines()] == []


def test_readme_fits_a_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 75


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "diagrams").glob("*.svg")))
def test_diagram_has_a_title_a_description_and_dark_colours(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    title, description, style = (each.text or "" for each in root[:3])

    assert root.attrib["aria-labelledby"] == "title desc"
    assert title.strip()
    assert len(description.split()) > 10
    assert "prefers-color-scheme: dark" in style


def test_links_of_the_documents_lead_to_files_and_headings() -> None:
    pages = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    missing = []
    for page in pages:
        for link in re.findall(r"\]\(((?!\w+:)[^)\s]+)\)", page.read_text()):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if not target.exists() or (anchor and anchor not in _anchors(target)):
                missing.append(f"{page.relative_to(ROOT)}: {link}")

    assert missing == []


def test_each_claim_about_security_names_a_test_that_exists() -> None:
    rows = re.findall(r"^\| (?!claim).* \|$", SECURITY, re.MULTILINE)
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))

    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert [name for name in named if f"def {name}(" not in tests] == []


def test_cells_of_the_comparison_have_a_source() -> None:
    rows = re.findall(r"^\| (.*) \|$", COMPARISON.read_text(), re.MULTILINE)
    tables = [re.split(r" \| ", row) for row in rows if not row.startswith("---")]
    cells = [cell for row in tables for cell in row[1:] if len(row) > 3 and row[0]]

    assert len(cells) > 150
    assert [
        c for c in cells if c != "not stated" and "](" not in c and "][" not in c
    ] == []


def test_tests_that_the_comparison_names_exist() -> None:
    named = re.findall(r'\]\((\.\./tests/\S+) "(\w+)"\)', COMPARISON.read_text())

    assert len(named) > 20
    for path, test in named:
        assert f"def {test}(" in (COMPARISON.parent / path).read_text(), (path, test)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_design_is_short() -> None:
    assert len(DESIGN.splitlines()) <= 200


@pytest.mark.parametrize(
    "package",
    [
        "admin",
        "config",
        "consumer",
        "dead_letters",
        "inspection",
        "metrics",
        "migration",
        "net",
        "producer",
        "protocol",
    ],
)
def test_package_docstring_names_every_module(package) -> None:
    missing = []
    for directory in sorted((ROOT / "sharecons" / package).rglob("__init__.py")):
        described = directory.read_text()
        missing += [
            str(path.relative_to(ROOT))
            for path in directory.parent.glob("*.py")
            if path.name != "__init__.py" and f"`{path.stem}`" not in described
        ]

    assert missing == []


def test_no_module_is_too_long() -> None:
    long = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "sharecons").rglob("*.py")
        if len(path.read_text().splitlines()) > 400
    ]

    assert long == []
