"""The table of a run, and the coverage of the modules that read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.fuzz.search import Report

__all__ = ["Measured", "escape_lines", "measure", "table"]

ROOT: Final = Path(__file__).parents[2]
HEAD: Final = f"{'target':<16}{'executions':>12}{'per second':>12}{'escapes':>9}"

Measured = Callable[[Sequence[str]], float]
"""Returns the part of the lines of these modules that has run, in percent."""


def table(reports: Iterable[Report], coverage: Measured | None = None) -> Iterator[str]:
    """Return a line for each target, and a line for all."""
    every = list(reports)
    yield HEAD + (f"{'coverage':>10}" if coverage else "")
    for each in every:
        line = (
            f"{each.target.name:<16}{each.executions:>12,}{each.rate:>12,.0f}"
            f"{len(each.escapes):>9}"
        )
        yield line + (f"{coverage(each.target.modules):>9.1f}%" if coverage else "")
    executions = sum(each.executions for each in every)
    seconds = sum(each.seconds for each in every)
    escapes = sum(len(each.escapes) for each in every)
    rate = executions / seconds if seconds else 0.0
    yield f"{'all':<16}{executions:>12,}{rate:>12,.0f}{escapes:>9}"


def escape_lines(target: str, kind: str, text: str, saved: Path) -> Iterator[str]:
    """Return the lines that describe an escape."""
    yield f"{target}: {kind}"
    yield from text.rstrip().splitlines()[-8:]
    yield f"    python -m tests.fuzz --replay {_relative(saved)}"


def _relative(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def measure() -> Measured:
    """Measure coverage from now on; call it before the package is imported.

    Compiled modules are not measured: use plain Python (SHARECONS_PURE=1).
    """
    from coverage import Coverage

    measuring = Coverage(data_file=None, source_pkgs=["sharecons"], branch=False)
    measuring.start()

    def percent(modules: Sequence[str]) -> float:
        measuring.stop()
        try:
            lines = [_lines(measuring, path) for path in _files(modules)]
        finally:
            measuring.start()
        total = sum(known for known, _ in lines)
        return (
            100 * (1 - sum(missing for _, missing in lines) / total) if total else 0.0
        )

    return percent


def _lines(measuring: Any, path: Path) -> tuple[int, int]:
    """Return how many statements a file has, and how many never ran."""
    _, statements, _, missing, _ = measuring.analysis2(str(path))
    return len(statements), len(missing)


def _files(modules: Sequence[str]) -> Iterator[Path]:
    import sharecons

    package = Path(sharecons.__file__).parent
    for name in modules:
        path = package.joinpath(*name.split("."))
        yield from path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
