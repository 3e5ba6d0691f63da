"""The public surface: names, the tree of errors, and the modules that it imports."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import sharecons
from sharecons import Producer, ShareConsumer, ShareGroupAdmin, errors
from sharecons.dead_letters import DeadLetters
from sharecons.metrics import METRICS

PACKAGE = Path(sharecons.__file__).parent
MODULES = sorted(
    ".".join(("sharecons", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py", "version.py")
)

PUBLIC = [
    "sharecons",
    *(
        f"sharecons.{path.parent.name}"
        for path in sorted(PACKAGE.glob("*/__init__.py"))
        if "\n__all__" in path.read_text() and path.parent.name != "cli"
    ),
    "sharecons.errors",
    "sharecons.spark.outcomes",
    "sharecons.testing.kafka",
    "sharecons.testing.virtual_time",
    "sharecons.worker.outcomes",
    "sharecons.worker.stats",
]
"""The modules that applications and tests import."""

OPTIONAL = (
    "confluent_kafka",
    "fastavro",
    "jgo",
    "librt",
    "opentelemetry",
    "pyarrow",
    "pyspark",
    "shtab",
    "taskiq",
    "uvloop",
    "watchfiles",
)
LOADED_BY_OTHERS = ("hypothesis", "pytest", "rich", "trio")
"""Optional packages that kio and structlog import if they are installed."""


@pytest.mark.slow("imports optional packages")
@pytest.mark.parametrize("module", ["sharecons", *MODULES])
def test_every_name_in_all_of_a_module_exists(module: str) -> None:
    try:
        made = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")
    names = made.__all__
    assert [name for name in names if not hasattr(made, name)] == []
    assert len(set(names)) == len(names)


@pytest.mark.slow("imports optional packages")
@pytest.mark.parametrize("module", PUBLIC)
def test_dir_and_star_import_of_a_public_module_have_its_public_names(
    module: str,
) -> None:
    try:
        made = importlib.import_module(module)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    names = {name for name in dir(made) if name != "__version__"}
    imported: dict[str, object] = {}
    exec(f"from {module} import *", imported)

    assert names == set(made.__all__)
    assert names == imported.keys() - {"__builtins__"}


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("sharecons", "ShareConsumr", "ShareConsumer"),
        ("sharecons.testing", "make_recrd", "make_record"),
    ],
)
def test_misspelled_name_of_a_lazy_module_has_a_hint(
    module: str, name: str, meant: str
) -> None:
    program = f"import {module}; {module}.{name}"
    command = [sys.executable, "-c", program]
    errors = subprocess.run(command, capture_output=True, text=True).stderr

    assert f"module {module!r} has no attribute {name!r}" in errors
    assert f"Did you mean: {meant!r}?" in errors


@pytest.mark.slow("parses the whole package")
def test_every_public_name_has_a_docstring() -> None:
    # From the source, without an import of each lazy name and its dependencies.
    sources = [
        path.read_text()
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "testing"
    ]
    made = {
        node.name: node
        for source in sources
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and node.name in sharecons.__all__
    }
    public = [
        (name, node)
        for name, each in made.items()
        for node in [each, *each.body]
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and "overload" not in map(ast.unparse, node.decorator_list)
    ]

    assert set(made) == set(sharecons.__all__) - {"COMPILED"}
    assert [f"{n}.{d.name}" for n, d in public if not ast.get_docstring(d)] == []


@pytest.mark.slow("imports optional packages")
def test_no_two_public_classes_have_the_same_name() -> None:
    packages = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir())
    public: dict[str, set[type]] = {}
    for name in ["sharecons", *(f"sharecons.{each}" for each in packages)]:
        try:
            package = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        for exported in getattr(package, "__all__", ()):
            if isinstance(made := getattr(package, exported), type):
                public.setdefault(exported, set()).add(made)

    assert public
    assert {name: each for name, each in public.items() if len(each) > 1} == {}


def test_requested_build_is_running() -> None:
    if os.environ.get("SHARECONS_PURE") == "1":
        assert sharecons.COMPILED is False
    elif os.environ.get("SHARECONS_COMPILE") == "1":
        assert sharecons.COMPILED is True
    # Compiled classes have no source file; their module has.
    module = importlib.import_module(sharecons.Record.__module__)
    assert sharecons.COMPILED is (Path(str(module.__file__)).suffix != ".py")


def test_tree_of_errors_in_the_docstring_matches_the_classes() -> None:
    drawn: list[tuple[str, str]] = []
    path: list[str] = []
    assert errors.__doc__
    for line in errors.__doc__.splitlines():
        match = re.match(r"    (?P<lead>[│├└─ ]*)(?P<name>[A-Z]\w+)\b", line)
        if match is None:
            continue
        depth = len(match["lead"]) // 4
        path = [*path[:depth], match["name"]]
        if depth:
            drawn.append((path[-1], path[-2]))
    real = [
        (name, getattr(errors, name).__bases__[0].__name__)
        for name in errors.__all__
        if name != "Error"
    ]

    assert path
    assert sorted(drawn) == sorted(real)


def python(program: str) -> str:
    """Run a program in a new interpreter; return its output."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "client", [DeadLetters, Producer, ShareConsumer, ShareGroupAdmin]
)
def test_clients_take_their_servers_in_the_same_way(client: type) -> None:
    servers = inspect.signature(client).parameters["bootstrap_servers"]

    assert inspect.Parameter.KEYWORD_ONLY is servers.kind
    assert "localhost:9092" == servers.default
    assert str | Sequence[str] == servers.annotation


@pytest.mark.slow("starts a process")
def test_import_loads_no_optional_package() -> None:
    loaded = python(
        "import sys; from sharecons import *; "
        "print(*{name.split('.')[0] for name in sys.modules})"
    ).split()
    assert {"sharecons", "kio"} <= set(loaded)
    assert set(OPTIONAL) & set(loaded) == set()


@pytest.mark.slow("starts a process")
def test_import_works_without_optional_packages() -> None:
    # None in sys.modules makes the import of a module fail.
    python(
        "import sys; "
        f"sys.modules.update(dict.fromkeys({OPTIONAL + LOADED_BY_OTHERS!r})); "
        "from sharecons import *; "
        "import sharecons.dead_letters, sharecons.inspection, sharecons.migration, "
        "sharecons.properties, sharecons.testing"
    )


@pytest.mark.slow("starts a process")
def test_import_does_not_load_the_client() -> None:
    loaded = python("import sys, sharecons; print(*sys.modules)").split()
    assert ["sharecons"] == [name for name in loaded if name.startswith("sharecons")]
    assert set(sharecons.__all__) <= set(dir(sharecons))


def test_metrics_are_a_copy() -> None:
    consumer = sharecons.ShareConsumer("orders", group_id="billing")
    before = repr(consumer.metrics())
    consumer.metrics().update(dict.fromkeys(METRICS, 7))  # type: ignore[attr-defined]
    assert before == repr(consumer.metrics())
