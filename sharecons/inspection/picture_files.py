"""The picture of a share group as an HTML page or an SVG, without external files.

Both show what the terminal's picture shows: the heading, the numbers and the bar of
each partition, the legend and the findings.
"""

import html
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import Final

from sharecons.escaping import escape
from sharecons.inspection.bar_svg import (
    CELL,
    HEIGHT,
    PATTERNS,
    STYLE,
    WIDTH,
    bar_svg,
    key_svg,
    sample_of,
    shapes_of,
)
from sharecons.inspection.diagnosis.dead_letter_checks import describe_dead_letters
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.offset_bars import OffsetBar, offset_bars_of
from sharecons.inspection.partition_rows import (
    RANGE_HEADINGS,
    TEXTS,
    columns_of,
    ranges_of,
    texts_of,
)
from sharecons.inspection.picture import (
    heading_of,
    remarks_of,
    scale_of,
    styles_of,
    unread_of,
)

__all__ = ["html_page", "svg_picture", "table_html"]

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}body {{ margin: 2rem; color: var(--ink); background: var(--paper);
  font: 14px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.1rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2rem .8rem .2rem 0; text-align: right; white-space: nowrap; }}
th {{ color: var(--quiet); font-weight: 600; }}
.text {{ text-align: left; }}
.bar {{ width: 30rem; max-width: 70vw; display: block; }}
.key {{ width: 12px; height: 16px; vertical-align: -3px; }}
ul {{ padding: 0; list-style: none; }}
.legend li {{ display: inline-block; margin-right: 1.5rem; }}
</style></head>
<body>
{patterns}<h1>{heading}</h1>
{body}
</body></html>
"""


def html_page(group: GroupInspection, *, offsets: bool = False) -> str:
    """Return a page that follows the reader's choice of light or dark."""
    return _PAGE.format(
        title=html.escape(_title(group)),
        style=STYLE,
        patterns=f'<svg width="0" height="0" aria-hidden="true">{PATTERNS}</svg>',
        heading=html.escape(_heading(group)),
        body="\n".join(_body(group, offsets)),
    )


def table_html(
    headings: Sequence[str], rows: Sequence[Sequence[str]], bars: Sequence[str] = ()
) -> str:
    """Return a table of texts; `bars` are elements for the last column."""
    head = [_cell("th", heading, heading) for heading in headings]
    if bars:
        head.append('<th class="text">OFFSETS</th>')
    lines = [f'<div class="wide"><table><thead><tr>{"".join(head)}</tr></thead><tbody>']
    for index, row in enumerate(rows):
        cells = [_cell("td", *each) for each in zip(row, headings, strict=True)]
        if bars:
            cells.append(f'<td class="text">{bars[index]}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join((*lines, "</tbody></table></div>"))


def _cell(tag: str, text: str, heading: str) -> str:
    style = ' class="text"' if heading in TEXTS else ""
    return f"<{tag}{style}>{html.escape(text)}</{tag}>"


def _body(group: GroupInspection, offsets: bool) -> Iterator[str]:
    if group.dead_letters is not None:
        yield f"<p>dead letters: {html.escape(_dead_letters(group))}</p>"
    remarks = "".join(f"<li>{html.escape(each)}</li>" for each in _remarks(group))
    if group.partitions.found:
        headings, rows, bars = _table(group, offsets)
        limit = group.facts.delivery_limit
        yield table_html(headings, rows, [bar_svg(each, limit) for each in bars])
        if bars:
            keys = (
                f"<li>{key_svg(each)} {html.escape(each.label)}</li>"
                for each in styles_of(group, bars)
            )
            yield f'<ul class="legend">{"".join(keys)}</ul><p>{scale_of(bars)}</p>'
    yield f"<ul>{remarks}</ul>"


# The SVG: lines of text in a font of one width, with bars beside them.

_CHARACTER: Final = 7.3
_LINE: Final = 22
_MARGIN: Final = 16
_GAP: Final = 2
_TEXT_WIDTH: Final = 130
"""Characters of a line of text."""

_SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}">
<title>{title}</title>
<style>
{style}text {{ font: 12px ui-monospace, Menlo, "DejaVu Sans Mono", Consolas, monospace;
  fill: var(--ink); white-space: pre; }}
.strong {{ font-weight: bold; }}
.right {{ text-anchor: end; }}
</style>
{patterns}<rect width="{width:.0f}" height="{height:.0f}" fill="var(--paper)"/>
{body}
</svg>
"""


def svg_picture(group: GroupInspection, *, offsets: bool = False) -> str:
    """Return an SVG with a background of its own, light or dark."""
    lines = _Lines()
    lines.add_texts(_heading(group), strong=True)
    if group.dead_letters is not None:
        lines.add_texts(f"dead letters: {_dead_letters(group)}")
    if group.partitions.found:
        lines.skip()
        headings, rows, bars = _table(group, offsets)
        lines.add_table(headings, rows, bars, group.facts.delivery_limit)
        if bars:
            lines.skip()
            lines.add_legend(group, bars)
    lines.skip()
    for each in _remarks(group):
        lines.add_texts(each)
    return _SVG.format(
        width=lines.width + _MARGIN,
        height=lines.y + _LINE / 2,
        title=html.escape(_title(group)),
        style=STYLE,
        patterns=PATTERNS,
        body="\n".join(lines.shapes),
    )


class _Lines:
    """Lines of an SVG, from top to bottom."""

    def __init__(self) -> None:
        self.shapes: list[str] = []
        self.width = 0.0
        self.y = _LINE

    def skip(self) -> None:
        self.y += _LINE // 2

    def add_texts(self, text: str, *, strong: bool = False) -> None:
        """Add a text of as many lines as it needs."""
        for line in wrap(text, _TEXT_WIDTH, subsequent_indent="    "):
            self._add_text(_MARGIN, line, "strong" if strong else "")
            self.y += _LINE

    def add_table(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        bars: Sequence[OffsetBar],
        delivery_limit: int | None,
    ) -> None:
        columns = [*zip(headings, *rows, strict=True)]
        widths = [max(map(len, each)) * _CHARACTER for each in columns]
        for index, row in enumerate((headings, *rows)):
            x = float(_MARGIN)
            for text, heading, width in zip(row, headings, widths, strict=True):
                is_text = heading in TEXTS
                style = ("strong " if index == 0 else "") + ("" if is_text else "right")
                self._add_text(x if is_text else x + width, text, style.strip())
                x += width + _GAP * _CHARACTER
            if bars and index == 0:
                self._add_text(x, "OFFSETS", "strong")
            elif bars:
                shapes = shapes_of(bars[index - 1], delivery_limit)
                self._add_shapes(x, WIDTH, shapes)
            self.y += _LINE

    def add_legend(self, group: GroupInspection, bars: Sequence[OffsetBar]) -> None:
        x = float(_MARGIN)
        for style in styles_of(group, bars):
            width = 3 * CELL + (len(style.label) + _GAP) * _CHARACTER
            if x + width > _MARGIN + _TEXT_WIDTH * _CHARACTER:
                x = float(_MARGIN)
                self.y += _LINE
            self._add_shapes(x, 2 * CELL, sample_of(style))
            self._add_text(x + 3 * CELL, style.label)
            x += width
        self.y += _LINE
        self.add_texts(scale_of(bars))

    def _add_text(self, x: float, text: str, style: str = "") -> None:
        name = f' class="{style}"' if style else ""
        self.shapes.append(
            f'<text{name} x="{x:.1f}" y="{self.y}">{html.escape(text)}</text>'
        )
        if "right" not in style:
            self.width = max(self.width, x + len(text) * _CHARACTER)

    def _add_shapes(self, x: float, width: int, shapes: str) -> None:
        y = self.y - HEIGHT + 4
        self.shapes.append(f'<g transform="translate({x:.1f} {y})">{shapes}</g>')
        self.width = max(self.width, x + width)


def _table(
    group: GroupInspection, offsets: bool
) -> tuple[Sequence[str], list[tuple[str, ...]], Sequence[OffsetBar]]:
    """Return headings, rows and bars of a table; ranges of offsets have no bars."""
    if offsets:
        return RANGE_HEADINGS, [texts for _, texts in ranges_of(group, escape)], ()
    bars, columns = offset_bars_of(group), columns_of(group)
    rows = [texts_of(bar.key, bar.partition, columns, group.at, escape) for bar in bars]
    return tuple(rows[0]), [tuple(row.values()) for row in rows], bars


def _heading(group: GroupInspection) -> str:
    at = datetime.fromtimestamp(group.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC.")
    return f"{at} {escape(heading_of(group))}"


def _dead_letters(group: GroupInspection) -> str:
    assert group.dead_letters is not None, "checked by the caller"
    return escape(describe_dead_letters(group.dead_letters))


def _remarks(group: GroupInspection) -> Iterator[str]:
    for subject, severity, text in remarks_of(group):
        yield escape(f"{subject}: {severity.name}: {text}")
    yield from map(escape, unread_of(group))


def _title(group: GroupInspection) -> str:
    return f"Share group {escape(group.group.group_id)}"
