"""The pages of the API: a heading, and one line per public name for mkdocstrings.

The names are read from the source. The top level exports lazily; its imports for type
checkers show the module of each name.
"""

import ast
from collections.abc import Iterator

from tests.site.layout import ROOT

__all__ = ["PAGES", "exports", "names_of", "page"]

PAGES = {
    "consumer": ("Consumer and records", ()),
    "worker": ("Worker", ()),
    "producer": ("Producer", ()),
    "errors": ("Errors", ("sharecons.errors",)),
    "connections": ("Connections", ()),
    "admin": ("Administration", ("sharecons.admin",)),
    "dead-letters": ("Dead letters", ("sharecons.dead_letters",)),
    "inspection": ("Inspection", ("sharecons.inspection",)),
    "migration": ("Migration", ("sharecons.migration",)),
    "metrics": ("Metrics", ("sharecons.metrics",)),
    "testing": ("Testing", ("sharecons.testing",)),
    "otel": ("OpenTelemetry", ("sharecons.otel",)),
    "prometheus": ("Prometheus", ("sharecons.prometheus",)),
    "taskiq": ("taskiq", ("sharecons.taskiq",)),
    "spark": ("Spark", ("sharecons.spark", "sharecons.spark.outcomes")),
    "dashboard": ("Dashboard", ("sharecons.dashboard",)),
}
"""The titles of the pages and the modules whose names they have, by file name."""

PLACES = {
    "worker": "worker",
    "copies": "worker",
    "producer": "producer",
    "errors": "errors",
    "admin": "admin",
    "config": "connections",
    "properties": "connections",
}
"""The pages of names that `sharecons` exports, by the package that defines them."""

FIRST = ("ShareConsumer", "Record", "ShareWorker", "Producer", "ShareGroupAdmin")
"""Names that begin their page; others follow in the order of the source."""


def exports(module: str) -> list[str]:
    """Return `__all__` of a module, from its source."""
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise LookupError(f"{module} has no __all__")


def names_of(name: str) -> list[str]:
    """Return the public names on a page; top-level names by their shortest path."""
    top = sorted(_top_level(name), key=lambda each: each not in FIRST)
    modules = PAGES[name][1]
    others = [(module, n) for module in modules for n in exports(module)]
    return [
        *(f"sharecons.{n}" for n in top),
        *(f"{module}.{n}" for module, n in others if n not in top),
    ]


def page(name: str) -> str:
    """Return the Markdown of a page."""
    blocks = "".join(f"\n::: {path}\n" for path in names_of(name))
    title, modules = PAGES[name]
    listed = " and ".join(f"`{module}`" for module in modules or ("sharecons",))
    return f"# API: {title}\n\nPublic names of {listed}, from the source.\n{blocks}"


def _top_level(name: str) -> Iterator[str]:
    public = set(exports("sharecons"))
    for node in ast.walk(_tree("sharecons")):
        if isinstance(node, ast.ImportFrom) and node.module:
            package = [*node.module.split("."), ""][1]
            if PLACES.get(package, "consumer") == name:
                yield from (a.name for a in node.names if a.name in public)


def _tree(module: str) -> ast.Module:
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())
