"""Tables of figures by size, and their exponents."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.limits.figures import Figure
from tests.limits.growth import NOISE, exponent, is_fault

__all__ = ["Results", "Row", "faults", "read", "rows", "save", "table"]

Results = Mapping[str, Mapping[int, Sequence[Figure]]]
"""Figures by axis and size."""

FAULT: Final = "faster"
BROKER: Final = "faster, the broker"


class Row(NamedTuple):
    """One figure at all sizes of an axis; None where it was not measured."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    exponent: float | None
    verdict: str


def rows(by_size: Mapping[int, Sequence[Figure]]) -> Iterator[Row]:
    """Yield the rows of an axis, in the order of the figures."""
    sizes = sorted(by_size)
    found = {size: {each.key: each for each in by_size[size]} for size in sizes}
    keys = dict.fromkeys(key for size in reversed(sizes) for key in found[size])
    for name, detail, unit in keys:
        figures = [found[size].get((name, detail, unit)) for size in sizes]
        values = tuple(None if each is None else each.value for each in figures)
        known = [(n, f.value) for n, f in zip(sizes, figures, strict=True) if f]
        grows, verdict = None, ""
        if len(known) > 1:
            measured, noise = tuple(zip(*known, strict=True)), NOISE[unit]
            grows = exponent(*measured, noise)
            if is_fault(*measured, noise):
                is_broker = any(each and each.is_broker for each in figures)
                verdict = BROKER if is_broker else FAULT
        label = f"{name}, {detail}" if detail else name
        yield Row(label, unit, values, grows, verdict)


def faults(results: Results) -> Iterator[str]:
    """Yield the figures of clients and tools that grow faster than their size."""
    for axis, by_size in results.items():
        for row in rows(by_size):
            if row.verdict == FAULT:
                yield f"{axis}: {row.name} ({row.unit}) grows as {row.exponent:.2f}"


def table(axis: str, by_size: Mapping[int, Sequence[Figure]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    sizes = sorted(by_size)
    heading = " | ".join(f"{size:,}" for size in sizes)
    yield f"| {axis} | unit | {heading} | exponent | |"
    yield f"|---|---|{'---:|' * (len(sizes) + 1)}---|"
    for row in rows(by_size):
        values = " | ".join(map(_number, row.values))
        grows = "" if row.exponent is None else f"{row.exponent:.2f}"
        yield f"| {row.name} | {row.unit} | {values} | {grows} | {row.verdict} |"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def save(results: Results, path: Path) -> None:
    """Write results as JSON."""
    path.write_text(
        json.dumps(
            {
                axis: {str(size): figures for size, figures in by_size.items()}
                for axis, by_size in results.items()
            },
            indent=1,
        )
    )


def read(path: Path) -> dict[str, dict[int, list[Figure]]]:
    """Read results that `save` has written."""
    return {
        axis: {
            int(size): [Figure(*each) for each in figures]
            for size, figures in by_size.items()
        }
        for axis, by_size in json.loads(path.read_text()).items()
    }


def document(results: Results) -> Iterable[str]:
    """Yield the tables of all axes."""
    for axis, by_size in results.items():
        yield ""
        yield from table(axis, by_size)
