"""No module of the package reads or writes the private attributes of other objects.

An attribute that begins with an underscore belongs to the class that sets it. Only this
class uses it, by `self` or `cls`. Each exception is listed here with its reason.
"""

import ast
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent / "sharecons"

NAMED_TUPLE: Final = frozenset({"_replace", "_asdict", "_make", "_fields"})
"""Public methods of named tuples."""

ALLOWED: Final = {
    # A class or function that makes an object of its own class.
    "dead_letters/client.py": {"letters._set"},
    "net/connection.py": {"connection._handshake"},
    "protocol/open_enum.py": {"unknown._name_", "unknown._value_"},
    "spark/ledger.py": {"ledger._redeliverable", "ledger._topics"},
    "spark/query_link.py": {"query._lines"},
    # Another object of the same class.
    "protocol/admin/results.py": {"other._value"},
    "records/offset_set.py": {
        "copy._firsts",
        "copy._lasts",
        "made._firsts",
        "made._lasts",
    },
    # Transactions use the connections of the admin client that the application has.
    "dead_letters/batch_writer.py": {"self._admin._brokers"},
    # Other libraries have no public way.
    "cli/groups/arguments.py": {"command._actions", "parser._actions"},
    "spark/pipeline/files.py": {"spark._jsc", "spark._jvm"},
    "spark/pipeline/session.py": {"spark._jsc", "spark._jvm"},
    "spark/remote_storage.py": {"self._files._strip_protocol"},
}
"""The private accesses by module; spelled as in the source."""


def private_accesses(source: str) -> set[str]:
    """Return the accesses to underscore attributes of anything but self and cls."""
    tree = ast.parse(source)
    modules = {
        (each.asname or each.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for each in node.names
    }
    return {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and not is_own(node.value, modules)
    }


def is_private(name: str) -> bool:
    is_public = name.startswith("__") or name in NAMED_TUPLE
    return name.startswith("_") and not is_public


def is_own(owner: ast.expr, modules: set[str]) -> bool:
    """Return whether this is the object itself, or a module of another library."""
    if isinstance(owner, ast.Call):
        return isinstance(owner.func, ast.Name) and owner.func.id == "super"
    return isinstance(owner, ast.Name) and owner.id in {"self", "cls", *modules}


MODULES: Final = sorted(
    str(path.relative_to(ROOT)).replace("\\", "/") for path in ROOT.rglob("*.py")
)


@pytest.mark.slow("parses every module")
def test_modules_use_only_private_attributes_of_their_own_objects() -> None:
    found = {
        module: accesses
        for module in MODULES
        if (accesses := private_accesses((ROOT / module).read_text("utf-8")))
    }

    assert found == ALLOWED


SOURCES: Final = frozenset({"member", "_member", "source", "_source"})
"""The names of members of share groups, and of other record sources."""


def assignments_into_sources(source: str) -> set[str]:
    """Return the attributes of sources, and of their parts, that are assigned."""
    return {
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store | ast.Del)
        and not SOURCES.isdisjoint(ast.unparse(node.value).split("."))
    }


def test_sources_are_constructed_whole_and_nothing_is_assigned_afterwards() -> None:
    users = [
        module
        for package in ("consumer", "worker", "taskiq", "spark")
        for module in MODULES
        if module.startswith(f"{package}/")
    ]

    found = {
        module: assigned
        for module in users
        if (assigned := assignments_into_sources((ROOT / module).read_text("utf-8")))
    }

    assert found == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("self._source = source", set()),
        ("member.owner = 'worker'", {"member.owner"}),
        ("self._member.buffer.hold = 1.0", {"self._member.buffer.hold"}),
        ("source.hold, other = 1.0, 2", {"source.hold"}),
    ],
)
def test_assignments_into_sources_are_found(source: str, found: set[str]) -> None:
    assert assignments_into_sources(source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("self._state; cls._made; super()._start()", set()),
        ("consumer._member", {"consumer._member"}),
        ("self._consumer._member.demand", {"self._consumer._member"}),
        ("consumer._topics = ()", {"consumer._topics"}),
        ("made()._state", {"made()._state"}),
        ("import os\nos._exit(1)", set()),
        ("from sharecons import net\nnet._pool", {"net._pool"}),
        ("result._replace(error=None)._asdict()", set()),
        ("record.__class__", set()),
    ],
)
def test_private_accesses_are_found(source: str, found: set[str]) -> None:
    assert private_accesses(source) == found
