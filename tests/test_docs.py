"""What the documents say of the code is so."""

import re
from pathlib import Path

from sharecons.protocol.group.heartbeat import TRANSITIONS

ROOT = Path(__file__).parent.parent
DESIGN = (ROOT / "docs" / "design.md").read_text()


def test_drawing_of_membership_is_its_table() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+) : ([\w ]+)$", DESIGN, re.MULTILINE)
    moves = [(s.name, to.name, h.value) for (s, h), to in TRANSITIONS.items()]

    assert moves == drawn


def test_every_guard_that_the_design_names_exists() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)(?:…)?`", DESIGN)

    assert named
    assert [name for name in named if f"def {name}" not in tests] == []


def test_every_module_is_on_the_map() -> None:
    packages = ("admin", "records", "wire", "testing", "cli", "demo")
    modules = [
        path.relative_to(ROOT / "sharecons")
        for path in (ROOT / "sharecons").rglob("*.py")
        if path.name not in ("__init__.py", "version.py")
    ]
    missing = [
        str(module)
        for module in modules
        if module.parts[0] not in packages and module.name not in DESIGN
    ]

    assert missing == []


def test_no_module_is_too_long() -> None:
    long = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "sharecons").rglob("*.py")
        if len(path.read_text().splitlines()) > 400
    ]

    assert long == []
