"""The documents name only what a program can import from public modules."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sharecons

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PRIVATE = {"net", "protocol", "records", "wire"}
OPTIONAL = {"sharecons.otel", "sharecons.spark", "sharecons.taskiq"}

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def import_lines(page: Path) -> Iterator[tuple[str, str]]:
    """Return the modules and names of sharecons that the code of a page imports."""
    for line in page.read_text().splitlines():
        if not re.match(r"\s*(from|import) sharecons\b", line):
            continue
        (statement,) = ast.parse(line.strip()).body
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield statement.module or "", alias.name
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.name, ""


@pytest.fixture(scope="module")
def error_packages() -> dict[str, str]:
    """The exception classes in the source, and the packages that must export them."""
    # A name that both have is the client's.
    files = sorted(
        (ROOT / "sharecons").rglob("*.py"), key=lambda path: "testing" in path.parts
    )
    found: dict[str, str] = {}
    for path in files:
        in_tests = "testing" in path.parts
        package = "sharecons.testing" if in_tests else "sharecons.errors"
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                found.setdefault(node.name, package)
    return found


@pages
def test_imports_of_a_page_are_public(page: Path) -> None:
    for module, name in import_lines(page):
        _, *parts = module.split(".")
        assert not PRIVATE & set(parts), f"{module} is private"
        assert not [part for part in parts if part.startswith("_")], module
        try:
            imported = importlib.import_module(module)
        except ModuleNotFoundError:
            assert module in OPTIONAL
            continue
        is_module = name in ("", "migration")
        assert is_module or name in imported.__all__, f"{module} has no {name}"
        if name:
            assert hasattr(imported, name) or is_module


@pages
def test_errors_of_a_page_can_be_imported(
    page: Path, error_packages: dict[str, str]
) -> None:
    named = set(re.findall(r"\b[A-Z]\w+Error\b", page.read_text()))
    own = {name: error_packages[name] for name in named & error_packages.keys()}
    missing = [
        f"{package}.{name}"
        for name, package in own.items()
        if name not in importlib.import_module(package).__all__
    ]

    assert [] == sorted(missing)


def test_errors_of_the_top_level_are_the_ones_of_errors() -> None:
    from sharecons import errors

    for name in sharecons.__all__:
        if name.endswith("Error"):
            assert getattr(errors, name) is getattr(sharecons, name)
