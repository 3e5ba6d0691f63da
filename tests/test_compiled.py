"""What mypyc is not to be given."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOOKS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
MODULES = HOOKS["targets"]["wheel"]["hooks"]["custom"]["modules"]


def waits_while_handling(tree):
    """Give the lines where something is awaited while an exception may be handled."""
    handling = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            handling.append(node)
        elif isinstance(node, ast.Try | ast.TryStar):
            handling += node.finalbody
        elif isinstance(node, ast.AsyncWith):  # its end is awaited
            yield node.lineno
    for node in handling:
        for within in ast.walk(node):
            if isinstance(within, ast.Await | ast.AsyncFor):
                yield within.lineno


@pytest.mark.parametrize("module", MODULES)
def test_nothing_compiled_waits_while_it_handles_an_exception(module):
    """A compiled coroutine that does leaves the exception to whoever runs next."""
    tree = ast.parse((ROOT / module).read_text())

    assert [] == list(waits_while_handling(tree))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (4, "try:\n  f()\nexcept E:\n  await g()"),
        (4, "try:\n  f()\nfinally:\n  await g()"),
        (1, "async with f():\n  pass"),
    ],
)
def test_waiting_while_handling_is_found(line, code):
    body = "\n".join(f"  {each}" for each in code.splitlines())
    tree = ast.parse(f"async def coroutine():\n{body}")

    assert [line + 1] == list(waits_while_handling(tree))
