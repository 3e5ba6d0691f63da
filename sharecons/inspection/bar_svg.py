"""The bar of a partition as SVG, for pages and files; see `offset_bars`.

Rule 1: a bar has CELLS cells, and a run of cells that look alike is one shape, so the
bar of any partition is small.
Rule 2: nothing is shown by colour alone: a status has a pattern or a sign, and the bar
a description in words, which screen readers read.

`STYLE` has the colours, light and dark. `PATTERNS` must be once in each document.
"""

import html
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from sharecons.escaping import escape
from sharecons.group_state.offset_states import OffsetRange, OffsetStatus
from sharecons.inspection.offset_bars import (
    STYLES,
    WINDOW_END,
    OffsetBar,
    StatusStyle,
    cells_of,
    has_one_delivery_left,
    sign_of,
)

__all__ = [
    "CELL",
    "HEIGHT",
    "PATTERNS",
    "STYLE",
    "WIDTH",
    "bar_svg",
    "describe",
    "key_svg",
    "sample_of",
    "shapes_of",
]

CELLS: Final = 100
CELL: Final = 6
WIDTH: Final = CELLS * CELL
HEIGHT: Final = 16

STYLE: Final = """\
:root { color-scheme: light dark; --paper: #fff; --ink: #1f2328; --quiet: #57606a;
  --acknowledged: #0969da; --archived: #6e7781; --archiving: #0e7480; --open: #922892;
  --last: #b42318; --above: #818b95; --track: #f0f2f4; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3;
  --quiet: #9aa4af; --acknowledged: #58a6ff; --archived: #8b949e; --archiving: #56d4dd;
  --open: #f088f0; --last: #ff7b72; --above: #7d8590; --track: #1b222b; } }
.bar-track { fill: var(--track) }
.bar-acknowledged { fill: var(--acknowledged) }
.bar-open, .bar-unknown { fill: var(--open) }
.bar-last, .bar-removed { fill: var(--last) }
.bar-sign { font: bold 11px ui-monospace, Menlo, Consolas, monospace;
  fill: var(--paper); text-anchor: middle }
.bar-end { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 3 2; fill: none }
.line-archived { stroke: var(--archived) }
.line-archiving { stroke: var(--archiving) }
.line-above, .line-no_record { stroke: var(--above) }
"""

PATTERNS: Final = """\
<defs>
<pattern id="bar-archived" width="4" height="4" patternUnits="userSpaceOnUse">\
<path class="line-archived" d="M-1 1l2-2M0 4l4-4M3 5l2-2" stroke-width="1.4"/></pattern>
<pattern id="bar-archiving" width="4" height="4" patternUnits="userSpaceOnUse">\
<path class="line-archiving" d="M0 4l4-4M0 0l4 4" stroke-width="1.2"/></pattern>
<pattern id="bar-above" width="6" height="16" patternUnits="userSpaceOnUse">\
<path class="line-above" d="M2 8h2" stroke-width="2"/></pattern>
<pattern id="bar-no_record" width="6" height="16" patternUnits="userSpaceOnUse">\
<path class="line-no_record" d="M0 8h5" stroke-width="1"/></pattern>
</defs>
"""

_SIGNED: Final = (OffsetStatus.OPEN, OffsetStatus.UNKNOWN, OffsetStatus.REMOVED)
_PATTERNED: Final = (
    OffsetStatus.ARCHIVED,
    OffsetStatus.ARCHIVING,
    OffsetStatus.ABOVE,
    OffsetStatus.NO_RECORD,
)


class _Look(NamedTuple):
    """How a cell looks: the name of its style, and whether it has a sign."""

    name: str
    is_patterned: bool
    is_signed: bool


def bar_svg(bar: OffsetBar, delivery_limit: int | None) -> str:
    """Return the bar as an `<svg>` element, WIDTH wide at most."""
    label = html.escape(describe(bar))
    return (
        f'<svg class="bar" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-label="{label}"><title>{label}</title>'
        f"{shapes_of(bar, delivery_limit)}</svg>"
    )


def shapes_of(bar: OffsetBar, delivery_limit: int | None) -> str:
    """Return the shapes of a bar, without an `<svg>` element around them."""
    cells = cells_of(bar, CELLS)
    shapes = [f'<rect class="bar-track" width="{WIDTH}" height="{HEIGHT}"/>']
    looks = [_look_of(cell, delivery_limit) for cell in cells]
    for look, run in groupby(enumerate(cells), lambda each: looks[each[0]]):
        if look is not None:
            shapes += _run(look, [(index, cell) for index, cell in run if cell])
    if bar.limit is not None and _is_above(cells, math.ceil(bar.limit * CELLS)):
        shapes.append(f'<path class="bar-end" d="M{bar.limit * WIDTH:g} 0v{HEIGHT}"/>')
    return "".join(shapes)


def _is_above(cells: Sequence[OffsetRange | None], index: int) -> bool:
    cell = cells[index] if index < len(cells) else None
    return cell is not None and cell.status is OffsetStatus.ABOVE


def key_svg(style: StatusStyle) -> str:
    """Return the sample of a status for a legend, as an `<svg>` element."""
    return (
        f'<svg class="key" viewBox="0 0 {CELL * 2} {HEIGHT}" aria-hidden="true">'
        f"{sample_of(style)}</svg>"
    )


def sample_of(style: StatusStyle) -> str:
    """Return the shapes of a sample, two cells wide."""
    if style is WINDOW_END:
        return f'<path class="bar-end" d="M{CELL} 0v{HEIGHT}"/>'
    status = next(each for each, known in STYLES.items() if known is style)
    sign = "5" if status is OffsetStatus.OPEN else style.sign
    return "".join(_shapes(_look(status), 0, 2, [sign]))


def describe(bar: OffsetBar) -> str:
    """Return what a bar shows, in words."""
    where = f"{escape(bar.key.topic)}-{bar.key.partition}"
    ranges = bar.partition.ranges
    if not ranges:
        return f"{where}: no offsets"
    counts = [
        f"{bar.partition.count(status):,} {style.label.partition(':')[0]}"
        for status, style in STYLES.items()
        if bar.partition.count(status)
    ]
    deliveries = [
        f"{number:,} delivered {count} times"
        for count, number in bar.partition.delivery_counts.items()
        if count > 1
    ]
    offsets = f"offsets {ranges[0].first_offset} to {ranges[-1].last_offset}"
    return f"{where}, {offsets}: {', '.join(counts + deliveries)}"


def _look_of(cell: OffsetRange | None, delivery_limit: int | None) -> _Look | None:
    if cell is None:
        return None
    look = _look(cell.status)
    if has_one_delivery_left(cell, delivery_limit):
        return look._replace(name="last")
    return look


def _look(status: OffsetStatus) -> _Look:
    return _Look(status.name.lower(), status in _PATTERNED, status in _SIGNED)


def _run(look: _Look, cells: list[tuple[int, OffsetRange]]) -> Iterator[str]:
    signs = [sign_of(cell, unicode=True) for _, cell in cells]
    return _shapes(look, cells[0][0], len(cells), signs)


def _shapes(look: _Look, first: int, count: int, signs: Sequence[str]) -> Iterator[str]:
    """Yield a rectangle of `count` cells, and the signs in their middles."""
    fill = f' fill="url(#bar-{look.name})"' if look.is_patterned else ""
    yield (
        f'<rect class="bar-{look.name}" x="{first * CELL}" width="{count * CELL}" '
        f'height="{HEIGHT}"{fill}/>'
    )
    if look.is_signed:
        step = count * CELL / len(signs)
        middles = (first * CELL + step * (n + 0.5) for n in range(len(signs)))
        places = " ".join(f"{middle:g}" for middle in middles)
        text = html.escape("".join(signs))
        yield f'<text class="bar-sign" y="12" x="{places}">{text}</text>'
