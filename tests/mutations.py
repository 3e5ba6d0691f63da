"""Random mutations of the package: which of them does no test notice?

    python -m tests.mutations --seed 1 --count 10 --package protocol

Each mutation changes one place of a module: a comparison, an integer, `and` and `or`,
a condition, a statement. It is made in a copy of the checkout in a temporary directory,
where the tests of the mutated package run. A mutation is `killed` if a test fails or
the time limit ends, and it has `SURVIVED` otherwise. A survivor either changes nothing
that can be observed, or shows a test that is missing.

The tests that import the mutated module run first, then all others of its package. For
`worker`, `consumer` and `member` these include the quick scenarios on the embedded
broker. All five packages are mutated unless `--package` is given, once or several
times.
"""

import argparse
import ast
import difflib
import importlib.util
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
QUICK: Final = "not kafka and not slow"
SCENARIOS: Final = (("tests/scenarios",), QUICK)

TESTS: Final[Mapping[str, Sequence[tuple[Sequence[str], str]]]] = {
    "protocol": [(("tests/protocol",), "not kafka")],
    "records": [(("tests/records",), "not kafka")],
    "worker": [(("tests/worker",), QUICK), SCENARIOS],
    "consumer": [(("tests/consumer",), QUICK), SCENARIOS],
    "member": [(("tests/member", "tests/consumer"), QUICK), SCENARIOS],
}
"""The runs of pytest by package: paths and an expression for `-m`."""

OPERATORS: Final[Mapping[type[ast.cmpop], tuple[str, Sequence[str]]]] = {
    ast.Lt: ("<", ["<=", ">="]),
    ast.LtE: ("<=", ["<", ">"]),
    ast.Gt: (">", [">=", "<="]),
    ast.GtE: (">=", [">", "<"]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: ("is not", ["is"]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: ("not in", ["in"]),
}
"""The text of each comparison operator, and its replacements."""

PASSED: Final = (0, 1, 5)
"""Exit codes of pytest, if no line of its output names a failure: all tests passed, a
test is above its time limit, no tests were selected."""

FAILURES: Final = ("FAILED ", "ERROR ")
OPTIONS: Final = ("-x", "-q", "-p", "no:cacheprovider", "-o", "timeout=60")
LOG_METHODS: Final = {"debug", "info", "warning", "error", "exception", "critical"}


@dataclass(frozen=True)
class Mutation:
    """A change of one place in a module.

    Attributes:
        kind: the kind of change, for example `comparison`.
        start: the first byte that is replaced; `end` is after the last one.
        text: the replacement.
    """

    path: Path
    line: int
    kind: str
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


class Mutator:
    """All mutations of one module."""

    def __init__(self, path: Path, source: bytes) -> None:
        self._path = path
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def mutations(self, node: ast.AST | None = None) -> Iterator[Mutation]:
        """Yield the mutations of a node and its children; by default of the module."""
        node = node or ast.parse(self._source)
        if not _is_skipped(node):
            yield from self._change(node)
            for child in _children(node):
                yield from self.mutations(child)

    def _change(self, node: ast.AST) -> Iterator[Mutation]:
        """Yield the mutations of this node, without its children."""
        if isinstance(node, ast.stmt):
            yield from self._change_statement(node)
        match node:
            case ast.Compare():
                yield from self._change_comparison(node)
            case ast.BoolOp(op=operator, values=[first, second, *_]):
                old, new = "and", "or"
                if isinstance(operator, ast.Or):
                    old, new = new, old
                # With more than two operands, only the first operator changes.
                yield self._mutation(node, old, new, self._between(first, second, old))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._mutation(node, "not", f"({self._text(operand)})")
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                negated = f"not ({self._text(test)})"
                yield self._mutation(test, "negated condition", negated)
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                yield self._mutation(node, "integer", str(value + 1))
                yield self._mutation(node, "integer", str(value - 1))

    def _change_statement(self, node: ast.stmt) -> Iterator[Mutation]:
        match node:
            case ast.Return(value=ast.Constant(value=bool(value)) as returned):
                yield self._mutation(returned, "returned bool", str(not value))
            case ast.Break():
                yield self._mutation(node, "break", "continue")
            case ast.Continue():
                yield self._mutation(node, "continue", "break")
            case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
                yield self._mutation(node, "removed call", "pass")
            case (
                ast.AugAssign()
                | ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_])
            ):
                # A missing local variable would only crash.
                yield self._mutation(node, "removed assignment", "pass")

    def _change_comparison(self, node: ast.Compare) -> Iterator[Mutation]:
        operands = [node.left, *node.comparators]
        pairs = itertools.pairwise(operands)
        for (left, right), operator in zip(pairs, node.ops, strict=True):
            old, replacements = OPERATORS[type(operator)]
            span = self._between(left, right, old)
            for new in replacements:
                yield self._mutation(node, "comparison", new, span)

    def _mutation(
        self,
        node: ast.expr | ast.stmt,
        kind: str,
        text: str,
        span: tuple[int, int] | None = None,
    ) -> Mutation:
        """Return a mutation that replaces the node, or the bytes of the span."""
        start, end = span or self._span(node)
        return Mutation(self._path, node.lineno, kind, start, end, text)

    def _between(self, left: ast.expr, right: ast.expr, word: str) -> tuple[int, int]:
        """Return the bytes of an operator between two expressions."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = rb"\b%s\b" if word[0].isalpha() else rb"%s"
        found = re.search(pattern % re.escape(word.encode()), self._source[start:end])
        assert found is not None, f"{self._path}:{left.lineno} has no {word!r}"
        return start + found.start(), start + found.end()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()


def _is_skipped(node: ast.AST) -> bool:
    """Return True for nodes without behaviour that tests should check."""
    match node:
        case ast.FunctionDef(name="__repr__") | ast.arg() | ast.JoinedStr():
            return True  # positions inside f-strings are wrong before Python 3.12
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in ("__all__", "__slots__")
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=method))):
            return method in LOG_METHODS and "log" in ast.unparse(owner).lower()
    return False


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children whose mutations count; annotations are left out."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
            yield from orelse
        case ast.AnnAssign(value=value):
            if value is not None:
                yield value
        case (
            ast.FunctionDef(args=args, body=body)
            | ast.AsyncFunctionDef(args=args, body=body)
        ):
            yield from args.defaults
            yield from (each for each in args.kw_defaults if each is not None)
            yield from body
        case _:
            yield from ast.iter_child_nodes(node)


def choose(library: Path, package: str, seed: int, count: int) -> list[Mutation]:
    """Return random mutations of the package; each kind is equally likely."""
    chooser = random.Random(f"{seed} {package}")
    by_kind: dict[str, list[Mutation]] = defaultdict(list)
    for path in sorted((library / "sharecons" / package).rglob("*.py")):
        mutator = Mutator(path.relative_to(library), path.read_bytes())
        for mutation in mutator.mutations():
            by_kind[mutation.kind].append(mutation)
    chosen: list[Mutation] = []
    while len(chosen) < count and by_kind:
        kind = chooser.choice(sorted(by_kind))
        candidates = by_kind[kind]
        chosen.append(candidates.pop(chooser.randrange(len(candidates))))
        if not candidates:
            del by_kind[kind]
    return chosen


class Copy:
    """A copy of the checkout, where tests run against mutated modules.

    `tests/conftest.py` moves the checkout to the end of sys.path, so the package is
    copied to another directory, `library`, which PYTHONPATH has.
    """

    def __init__(self, directory: Path) -> None:
        self._root = directory / "checkout"
        self.library = directory / "library"
        command = "git ls-files -z --cached --others --exclude-standard"
        listed = subprocess.check_output(command.split(), cwd=ROOT, text=True)
        for name in listed.split("\0")[:-1]:
            if (ROOT / name).is_file():
                target = self._path_of(Path(name))
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)

    def _path_of(self, path: Path) -> Path:
        in_package = path.parts[0] == "sharecons"
        return (self.library if in_package else self._root) / path

    @contextmanager
    def changed(self, path: Path, source: bytes) -> Iterator[None]:
        """Replace a file of the copy, and restore it afterwards."""
        target = self._path_of(path)
        before = target.read_bytes()
        try:
            self._write(target, source)
            yield
        finally:
            self._write(target, before)

    def _write(self, target: Path, source: bytes) -> None:
        target.write_bytes(source)
        # A compiled file counts as current if time and size are the same.
        for cached in target.parent.glob(f"__pycache__/{target.stem}.*"):
            cached.unlink()

    def failure(
        self, package: str, limit: float, *options: str, module: str = ""
    ) -> str | None:
        """Run the tests of a package, first the files that import the module.

        Returns the line of the first failure, or None if all tests pass within `limit`
        seconds for each run of pytest.
        """
        for paths, marks in TESTS[package]:
            files = self._files(paths, module)
            failure = self._pytest([*OPTIONS, *options, "-m", marks, *files], limit)
            if failure is not None:
                return failure
        return None

    def _files(self, paths: Sequence[str], module: str) -> list[str]:
        """Return the test files below the paths; files that import the module first."""
        files = [f for each in paths for f in (self._root / each).rglob("test_*.py")]
        pattern = re.compile(rf"\b{re.escape(module)}\b")
        files.sort(key=lambda file: (not pattern.search(file.read_text()), file))
        return [str(file.relative_to(self._root)) for file in files]

    def _pytest(self, arguments: Sequence[str], limit: float) -> str | None:
        changed = {
            "PYTHONPATH": str(self.library),
            "SHARECONS_TEST_BROKER": "embedded",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=self._root,
            env=os.environ | changed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a process group that can be killed
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return f"no result after {limit:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        lines = output.splitlines() or ["no output"]
        failed = [line for line in lines if line.startswith(FAILURES)]
        if process.returncode in PASSED and not failed:
            return None
        return (failed or lines)[-1]


def time_limit(copy: Copy, package: str) -> float:
    """Check that tests of the copy pass and use its modules; return the time limit."""
    broken = Path("sharecons", package, "__init__.py")
    with copy.changed(broken, b"raise ImportError('this is the copy')\n"):
        if copy.failure(package, 600.0, "--collect-only") is None:
            sys.exit(f"the tests do not import {broken} of the copy")
    started = time.monotonic()
    failure = copy.failure(package, 3600.0)
    if failure is not None:
        sys.exit(f"the tests of {package} fail without a mutation: {failure}")
    return 30.0 + 2 * (time.monotonic() - started)


def run(copy: Copy, mutation: Mutation, package: str, limit: float) -> str | None:
    """Run the tests with the mutation; return the first failure, or None."""
    source = mutation.apply((copy.library / mutation.path).read_bytes())
    module = ".".join(mutation.path.with_suffix("").parts).removesuffix(".__init__")
    with copy.changed(mutation.path, source):
        return copy.failure(package, limit, module=module)


def diff_of(source: bytes, mutation: Mutation) -> str:
    """Return the changed lines of a mutation, as in a unified diff."""
    before = source.decode().splitlines()
    after = mutation.apply(source).decode().splitlines()
    diff = list(difflib.unified_diff(before, after, lineterm="", n=0))
    return "\n".join(line for line in diff[2:] if not line.startswith("@@"))


def check_plain_python() -> None:
    """Exit if the package is compiled: a mutated source would change nothing."""
    found = importlib.util.find_spec("sharecons")
    for location in (found and found.submodule_search_locations) or []:
        compiled = [*Path(location).rglob("*.so"), *Path(location).rglob("*.pyd")]
        if compiled:
            sys.exit(f"sharecons is compiled; mutations need plain Python: {location}")


def main() -> int:
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--count", type=int, default=10, help="for each package")
    parser.add_argument("--package", action="append", choices=TESTS)
    options = parser.parse_args()
    check_plain_python()
    survived = total = 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as directory:
        copy = Copy(Path(directory))
        for package in options.package or TESTS:
            limit = time_limit(copy, package)
            mutations = choose(copy.library, package, options.seed, options.count)
            for mutation in mutations:
                source = (copy.library / mutation.path).read_bytes()
                failure = run(copy, mutation, package, limit)
                verdict = "SURVIVED" if failure is None else f"killed: {failure}"
                survived += failure is None
                total += 1
                sys.stdout.write(f"{mutation.path}:{mutation.line}: {mutation.kind}: ")
                sys.stdout.write(f"{verdict}\n{diff_of(source, mutation)}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{total} mutations, {total - survived} killed, ")
    sys.stdout.write(f"{survived} survived\n")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
