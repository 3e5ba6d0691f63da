"""Each program of a page is run by a test, or has a reason why not.

Tests run programs with `tests.guides.Guide`: by number, all in a loop, or by a name
that they define. Here the calls of the tests are read, not run.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guides import DOCS, Guide

TESTS = Path(__file__).parent
PAGES = ["../README.md", *sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))]

ELSEWHERE = {
    "../README.md": {"anyio.run(": "test_examples.py"},
    "index.md": {"anyio.run(main)": "test_examples.py"},
    "start.md": {
        "anyio.run(main)": "test_first_day.py",
        "def new_worker(": "test_first_day.py",
        "from first_worker import": "test_first_day.py",
    },
    "consumer-running.md": {"async def consumer(": "broker/test_plugin.py"},
    "testing.md": {
        "def test_": "broker/test_plugin.py",
        "@pytest_asyncio.fixture": "broker/test_plugin.py",
        "broker.faults.on(": "broker/test_plugin.py",
    },
    "coming-from": {"from sharecons ": "test_coming_from.py"},
    "typed-records.md": dict.fromkeys(
        ("msgspec.", "asdict", "class Placed(", "def place(", "fastavro", "registry"),
        "test_typed_records.py",
    ),
}
"""Programs that tests run in another way, by page or directory: a part of the program,
and the test.
"""

SPARK = "needs Spark and a directory; tests/spark runs queries with the same options"
NOT_RUN = {
    "security.md": {"Security.sasl(": "needs brokers with SCRAM over TLS"},
    "spark.md": {
        "query.awaitTermination()": SPARK,
        "spark.dataSource.register(": SPARK,
        "latest = orders": SPARK,
    },
    "spark-running.md": {"OutcomeWriter(": SPARK},
    "coming-from": {"import ": "programs of other libraries, beside our own"},
}
"""Programs that are only compiled, by page or directory: a part of it, and why."""


class Calls(ast.NodeVisitor):
    """The programs that a test module runs."""

    def __init__(self, tree: ast.Module) -> None:
        self.programs: set[str] = set()
        self._guides: dict[str, Guide] = {}
        self._loops = 0
        self._words = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        self.visit(tree)

    def visit_Assign(self, node: ast.Assign) -> None:
        if (guide := self._guide(node.value)) and isinstance(node.targets[0], ast.Name):
            self._guides[node.targets[0].id] = guide
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        # A fixture that returns a guide.
        last = node.body[-1]
        if isinstance(last, ast.Return) and (guide := self._guide(last.value)):
            self._guides[node.name] = guide
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1

    def visit_Call(self, node: ast.Call) -> None:
        is_method = isinstance(node.func, ast.Attribute) and node.args
        if is_method and (guide := self._guide(node.func.value)):
            self.programs |= set(self._run(guide, node.func.attr, node.args[0]))
        self.generic_visit(node)

    def _guide(self, node: ast.expr | None) -> Guide | None:
        match node:
            case ast.Name(id=name):
                return self._guides.get(name)
            case ast.Call(func=ast.Name(id="Guide"), args=[*pages]):
                names = [page.value for page in pages if isinstance(page, ast.Constant)]
                return Guide(*names) if len(names) == len(pages) else None
        return None

    def _run(self, guide: Guide, method: str, argument: ast.expr) -> Iterator[str]:
        constant = isinstance(argument, ast.Constant)
        if method == "run":
            if constant:
                yield guide.blocks[ast.literal_eval(argument)]
            elif self._loops:
                yield from guide.blocks
        elif method == "program":
            names = {ast.literal_eval(argument)} if constant else self._words
            for block in guide.blocks:
                if names & defined(block):
                    yield block


def defined(block: str) -> set[str]:
    found = re.findall(r"^(?:async def|def|class) (\w+)|^(\w+) =", block, re.MULTILINE)
    return {name for names in found for name in names if name}


@pytest.fixture(scope="module")
def programs() -> set[str]:
    """The programs that tests run."""
    return {
        program
        for path in TESTS.rglob("test_*.py")
        if "Guide(" in (text := path.read_text())
        for program in Calls(ast.parse(text)).programs
    }


@pytest.mark.parametrize("page", PAGES)
def test_each_program_of_a_page_is_run(page: str, programs: set[str]) -> None:
    key = page if page in ELSEWHERE | NOT_RUN else page.rpartition("/")[0]
    others = {**ELSEWHERE.get(key, {}), **NOT_RUN.get(key, {})}
    rest = [block for block in Guide(page).blocks if block not in programs]
    known = [part for block in rest for part in others if part in block]

    assert [block for block in rest if not any(part in block for part in others)] == []
    assert others.keys() == {*known}, "run by a guide's test, or no longer in the page"


@pytest.mark.parametrize("page", ELSEWHERE)
def test_test_of_a_program_names_its_page(page: str) -> None:
    for test in ELSEWHERE[page].values():
        assert Path(page).name in (TESTS / test).read_text()
