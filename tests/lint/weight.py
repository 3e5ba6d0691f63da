"""Check how much a reader must load: all modules that a module imports in the end.

    python tests/lint/weight.py [MODULE...]

Counts files and lines of `sharecons` behind one module, with imports in functions and
the packages above each module, without `if TYPE_CHECKING`. Without arguments, the
consumer and the worker are checked against their limits.

The limits are what the tree has. Lower them when it gets lighter; raise them only for a
feature that a reader of that module needs.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CONSUMER: Final = "sharecons.consumer.share_consumer"
WORKER: Final = "sharecons.worker.share_worker"
LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    CONSUMER: (209, 27_509),
    WORKER: (290, 40_100),
}
"""Files and lines."""


def all_modules() -> dict[str, Path]:
    """Return the files of the package by the names of their modules."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in (ROOT / "sharecons").rglob("*.py")
    }


def imports(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """Return the modules of the package that a file imports itself."""
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in modules else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        waiting += ast.iter_child_nodes(node)


def closure(start: str, modules: Mapping[str, Path]) -> set[str]:
    """Return a module, and all modules that it loads in the end."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        # The top level exports everything, lazily; a reader does not start there.
        if name in found or name not in modules or name == "sharecons":
            continue
        found.add(name)
        waiting += imports(modules[name], modules)
        waiting.append(name.rpartition(".")[0])
    return found


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def main(arguments: list[str]) -> int:
    modules = all_modules()
    if unknown := [name for name in arguments if name not in modules]:
        sys.stdout.write(f"no module of the package: {', '.join(unknown)}\n")
        return 2
    heavy = False
    for start in arguments or LIMITS:
        loaded = closure(start, modules)
        total = sum(lines(modules[name]) for name in loaded)
        sys.stdout.write(f"{start}: {len(loaded)} files with {total:,} lines\n")
        files_limit, lines_limit = LIMITS.get(start, (len(modules), 1 << 60))
        if len(loaded) > files_limit or total > lines_limit:
            heavy = True
            sys.stdout.write(f"    at most {files_limit} and {lines_limit:,}\n")
    whole = sum(map(lines, modules.values()))
    sys.stdout.write(f"sharecons: {len(modules)} files with {whole:,} lines\n")
    return int(heavy)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
