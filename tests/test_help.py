"""The output of `help()`: docstrings and signatures, including compiled classes."""

import ast
import importlib
import inspect
import pydoc
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import sharecons
from sharecons import AcknowledgeFailure, AcknowledgeResult, Batch, Record

ROOT = Path(__file__).parent.parent
HOOKS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
MODULES = HOOKS["targets"]["wheel"]["hooks"]["custom"]["modules"]
VERBS = ("accept", "reject", "release", "renew")


def docstrings(node: ast.AST, within: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names in a module and their docstrings.

    Coroutine functions are left out: mypyc has no place for their docstrings, and no
    public one is compiled.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(child)
            if text is not None and child.name != "__init__":
                yield within + child.name, text
            if isinstance(child, ast.ClassDef):
                yield from docstrings(child, f"{within}{child.name}.")


def resolve(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("path", MODULES)
def test_docstrings_are_those_of_the_source(path: str) -> None:
    source = ast.parse((ROOT / path).read_text())
    module = path.removesuffix(".py").replace("/", ".")

    expected = dict(docstrings(source))
    shown = {name: inspect.getdoc(resolve(module, name)) for name in expected}

    assert shown == expected
    made = importlib.import_module(module)
    assert inspect.getdoc(made) == ast.get_docstring(source)


@pytest.mark.parametrize("kind", [Record, Batch])
def test_help_describes_the_ack_methods(kind: type) -> None:
    shown = pydoc.render_doc(kind, renderer=pydoc.plaintext)

    assert "Attributes:" in shown
    for verb in (*VERBS, "lock_deadline", "lock_remaining"):
        first_line = (inspect.getdoc(getattr(kind, verb)) or "").splitlines()[0]
        assert first_line
        assert first_line in shown


@pytest.mark.parametrize("kind", [Record, Batch])
@pytest.mark.parametrize("verb", VERBS)
def test_ack_methods_have_a_signature(kind: type, verb: str) -> None:
    own = ["self", "after"] if verb == "release" else ["self"]
    assert list(inspect.signature(getattr(kind, verb)).parameters) == own


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (
            Record,
            "topic partition offset timestamp timestamp_type key value headers "
            "delivery_count ack_target",
        ),
        (Batch, "lease records start"),
        (AcknowledgeResult, "topic partition first_offset last_offset type error"),
        (AcknowledgeFailure, "code name message"),
    ],
)
def test_classes_have_a_signature(kind: type, parameters: str) -> None:
    assert list(inspect.signature(kind).parameters) == parameters.split()


def test_acknowledge_result_has_type_hints() -> None:
    hints = get_type_hints(AcknowledgeResult)

    assert hints["error"] == AcknowledgeFailure | None
    assert hints["type"] is sharecons.AcknowledgeType
    assert hints["first_offset"] is int


def test_record_has_the_same_docstring_for_type_checkers() -> None:
    source = ast.parse((Path(sharecons.__file__).parent / "record.py").read_text())
    (typed,) = [n for n in ast.walk(source) if isinstance(n, ast.ClassDef)]

    assert ast.get_docstring(typed) == inspect.getdoc(Record)


def test_version_is_that_of_the_distribution() -> None:
    assert sharecons.__version__ == version("sharecons")
