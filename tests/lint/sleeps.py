"""Check that every sleep in real time has a reason, and that there are few.

    python tests/lint/sleeps.py [--list]

A sleep waits in real time unless it is `sleep(0)`, or its module uses virtual time
(`virtual_time`, `virtual_clock`, `VIRTUAL_CLOCK`), or the conftest.py beside it does.
Its line, or the line before, has to say why:

    await anyio.sleep(0.5)  # real time: the broker sends nothing, which takes 0.5 s

Benchmarks (tests/bench, tests/limits), runs with faults (tests/chaos) and long runs
(tests/soak) wait in real time by their nature and are not counted.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAXIMUM: Final = 60
EXEMPT: Final = ("bench", "chaos", "limits", "soak")
REASON: Final = "# real time: "
VIRTUAL: Final = ("virtual_time", "virtual_clock", "VIRTUAL_CLOCK")
OF_ALL: Final = "def anyio_backend(virtual_clock"
SLEEPERS: Final = {"anyio", "asyncio", "trio", "time"}
ROOT: Final = Path(__file__).parents[2]


def sleeps(path: Path) -> Iterator[tuple[int, bool]]:
    """Return the line of each sleep in real time, and whether it has a reason."""
    text = path.read_text()
    if any(word in text for word in VIRTUAL) or _follows_conftest(path, text):
        return
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and _waits(node):
            near = lines[max(node.lineno - 2, 0) : node.end_lineno]
            yield node.lineno, any(REASON in line for line in near)


def _follows_conftest(path: Path, text: str) -> bool:
    """Return whether the clock of a module is the virtual one of its directory."""
    beside = path.with_name("conftest.py")
    is_virtual = beside.exists() and OF_ALL in beside.read_text()
    return is_virtual and "def anyio_backend(" not in text


def _waits(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id=module), attr="sleep"):
            known = module in SLEEPERS
        case ast.Name(id="sleep"):
            known = True
        case _:
            known = False
    zero = bool(call.args) and ast.unparse(call.args[0]) == "0"
    return known and not zero


def main(arguments: list[str]) -> int:
    tests = ROOT / "tests"
    found = [
        (path.relative_to(ROOT), line, reason)
        for path in sorted(tests.rglob("*.py"))
        if not {tests / each for each in EXEMPT} & set(path.parents)
        for line, reason in sleeps(path)
    ]
    for path, line, reason in found:
        if not reason or "--list" in arguments:
            sys.stdout.write(f"{path}:{line}: a sleep in real time\n")
    sys.stdout.write(f"{len(found)} sleeps in real time, at most {MAXIMUM}\n")
    unexplained = any(not reason for _, _, reason in found)
    return 1 if unexplained or len(found) > MAXIMUM else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
