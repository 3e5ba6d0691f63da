"""The files on a record's path, as docs/design.md lists them."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "sharecons"
MAX_FILES: Final = 36

PROGRAM: Final = """
import sys
import anyio
from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker

files = set()

def profile(frame, event, argument):
    files.add(frame.f_code.co_filename)

async def main(servers):
    async with ShareConsumer(
        "orders",
        group_id="path",
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        max_records=50,
    ) as consumer:
        count = 0
        async for record in consumer:
            count += 1
            if count == 1000:  # the session is open, and the prefetch has grown
                sys.setprofile(profile)
            if count == 2000:
                sys.setprofile(None)
                break

with EmbeddedBroker(topics={"orders": 2}) as broker:
    for _ in range(300):
        broker.produce("orders", [b"x"] * 10)
    anyio.run(main, broker.bootstrap_servers)
print(*files, sep="\\n")
"""


def listed_files() -> set[str]:
    design = (ROOT / "docs" / "design.md").read_text()
    section = design.split("## The path of a record")[1].split("\n## ")[0]
    return set(re.findall(r"`([\w/]+\.py)`", section)) - {"tests/test_path.py"}


def imported_files(file: str) -> set[str]:
    """Return the files of the package that a file imports."""
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [
                node.module,
                *(f"{node.module}.{each.name}" for each in node.names),
            ]
            paths = ["/".join(module.split(".")[1:]) + ".py" for module in modules]
            found |= {path for path in paths if (PACKAGE / path).is_file()}
    return found


def test_design_lists_a_limited_number_of_files_that_the_consumer_imports() -> None:
    listed = listed_files()
    imported: set[str] = set()
    following = {"consumer/share_consumer.py"}
    while following:
        imported |= following
        following = {f for file in following for f in imported_files(file)} - imported

    assert len(listed) <= MAX_FILES
    assert listed - imported == set()


@pytest.mark.slow("starts a process")
def test_records_pass_only_the_listed_files() -> None:
    # In another process, and in plain Python: compiled code calls no profiler.
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    files = {Path(line) for line in run.stdout.split()}
    passed = {
        str(file.relative_to(PACKAGE))
        for file in files
        if file.is_relative_to(PACKAGE) and "testing" not in file.parts
    }

    assert passed - listed_files() == set()
    assert listed_files() - passed == set()
