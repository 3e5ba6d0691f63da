"""An inspection as one HTML page without external files."""

from datetime import UTC, datetime
from html import escape as escape_html
from typing import Final

from sharecons.escaping import escape as escape_text
from sharecons.inspection.diagnosis.dead_letter_checks import describe_dead_letters
from sharecons.inspection.diagnosis.findings import (
    Finding,
    Severity,
    format_age,
    format_duration,
)
from sharecons.inspection.diagnosis.offset_states import (
    SETTLED,
    OffsetRange,
    OffsetStatus,
)
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.offset_bars import (
    LEGEND,
    STYLES,
    BarSegment,
    OffsetBar,
    colour_of,
    offset_bars_of,
)

__all__ = ["page"]

WIDTH: Final = 1000
HEIGHT: Final = 22
MIN_WIDTH: Final = 3
"""Minimum width of unsettled ranges: a record among thousands stays visible."""

_STYLE: Final = """
:root { color-scheme: light; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1500px;
  padding: 0 1.5rem; color: #1b1f24; background: #fff; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; }
p { margin: .2rem 0; color: #444c56; }
ul.legend { list-style: none; padding: 0; margin: 1rem 0; display: flex;
  flex-wrap: wrap; gap: .4rem 1.4rem; }
ul.legend svg { width: 26px; height: 14px; vertical-align: -2px; margin-right: .4rem; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: #444c56; font-size: 12px;
  border-bottom: 1px solid #c8d0d8; padding: .3rem .6rem; }
td { padding: .35rem .6rem; border-bottom: 1px solid #e7ebef; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
td.strip { width: 42%; min-width: 320px; }
td.oldest { font-size: 13px; white-space: nowrap; }
td.strip svg { width: 100%; height: 22px; display: block; }
td.name { font-weight: 600; white-space: nowrap; }
td.says { font-size: 13px; min-width: 220px; }
b.stalled, b.warning { padding: 0 .35em; border-radius: 3px; margin-right: .4em; }
b.stalled { background: #8c2d04; color: #fff; }
b.warning { background: #f5c66b; color: #1b1f24; }
"""

_PATTERNS: Final = f"""
<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="archived" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)"><rect width="6" height="6" fill="#d5d9dd"/>
<rect width="3" height="6" fill="{STYLES[OffsetStatus.ARCHIVED].colour}"/></pattern>
<pattern id="above" width="6" height="6" patternUnits="userSpaceOnUse">
<rect width="6" height="6" fill="{STYLES[OffsetStatus.ABOVE].colour}"/>
<circle cx="3" cy="3" r="0.9" fill="#9aa7b2"/></pattern>
</defs></svg>
"""


def page(group: GroupInspection) -> str:
    """Return a page with a bar, numbers and findings for each partition."""
    title = f"Share group {group.group.group_id}"
    limit = group.facts.delivery_limit
    rows = "".join(_row(strip, group, limit) for strip in offset_bars_of(group))
    rows += "".join(
        f'<tr><td class="name">{_name(*key)}</td><td colspan="7">'
        f"{_escaped(str(error))}</td></tr>"
        for key, error in group.partitions.errors.items()
    )
    rows += "".join(
        f'<tr><td class="name">{_escaped(topic)}</td><td colspan="7" class="says">'
        f"{_finding(finding)}</td></tr>"
        for topic, finding in group.missing_topics.items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_escaped(title)}</title><style>{_STYLE}</style></head><body>"
        f"{_PATTERNS}<h1>{_escaped(title)}</h1>{_summary(group)}{_legend()}"
        "<table><thead><tr><th>partition</th><th>offsets from the start offset</th>"
        '<th class="n">start</th><th class="n">settled</th>'
        '<th class="n">available<br>or locked</th><th class="n">above</th>'
        "<th>oldest unsettled</th><th>findings</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></body></html>\n"
    )


def _summary(group: GroupInspection) -> str:
    at = datetime.fromtimestamp(group.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    facts = group.facts
    facts_text = [
        f"{group.group.state}, members: {facts.members}",
        f"inspected at {at}",
    ]
    if facts.record_locks is not None:
        facts_text.append(f"a window of {facts.record_locks:,} offsets")
    if facts.delivery_limit is not None:
        facts_text.append(f"{facts.delivery_limit} deliveries at most")
    if facts.lock_duration is not None:
        facts_text.append(f"locks last {format_duration(facts.lock_duration)}")
    if group.dead_letters is not None:
        text = describe_dead_letters(group.dead_letters)
        facts_text.append(f"dead letters: {text}")
    bars = offset_bars_of(group)
    scale = f"Each bar is {bars[0].span:,} offsets wide" if bars else ""
    if any(strip.limit is not None for strip in bars):
        scale += "; the dashed line is where the window is full"
    note = (
        "Only partition leaders know the acquisition locks: unsettled offsets are "
        "either available or locked."
    )
    first = _escaped("; ".join(facts_text))
    return f"<p>{first}.</p><p>{_escaped(f'{scale}. {note}')}</p>"


def _legend() -> str:
    def item(fill: str, words: str) -> str:
        return (
            '<li><svg viewBox="0 0 26 14"><rect width="26" height="14" '
            f'fill="{fill}" stroke="#7b8794" stroke-width=".6"/></svg>'
            f"{_escaped(words)}</li>"
        )

    items = []
    for status in LEGEND:
        if status is OffsetStatus.OPEN:
            for count, words in ((1, "delivered once"), (4, "near its last delivery")):
                sample = OffsetRange(
                    first_offset=0,
                    last_offset=0,
                    status=status,
                    delivery_count=count,
                )
                items.append(
                    item(colour_of(sample, 5), f"{STYLES[status].label}, {words}")
                )
        else:
            items.append(item(_fill(status), STYLES[status].label))
    return f'<ul class="legend">{"".join(items)}</ul>'


def _row(bar: OffsetBar, group: GroupInspection, limit: int | None) -> str:
    partition = bar.partition
    settled = partition.count(*SETTLED)
    cells = (
        "-" if partition.start_offset is None else f"{partition.start_offset}",
        f"{settled:,}",
        f"{partition.count(OffsetStatus.OPEN):,}",
        f"{partition.count(OffsetStatus.ABOVE):,}",
    )
    numbers = "".join(f'<td class="n">{each}</td>' for each in cells)
    return (
        f'<tr><td class="name">{_name(*bar.key)}</td>'
        f'<td class="strip">{_svg(bar, limit)}</td>{numbers}'
        f'<td class="oldest">{_oldest(bar, group)}</td>'
        f'<td class="says">{_findings(bar, group)}</td></tr>'
    )


def _oldest(bar: OffsetBar, group: GroupInspection) -> str:
    oldest = bar.partition.oldest
    if oldest is None:
        return "-"
    return f"{format_age(oldest, group.at)}<br>offset {oldest.offset}"


def _findings(bar: OffsetBar, group: GroupInspection) -> str:
    first, *others = group.findings[bar.key]
    worse = (each for each in others if each.severity > Severity.FINE)
    return "<br>".join(_finding(each) for each in (first, *worse))


def _finding(finding: Finding) -> str:
    text = _escaped(finding.text)
    if finding.severity < Severity.WARNING:
        return text
    name = finding.severity.name.lower()
    return f'<b class="{name}">{name}</b>{text}'


def _svg(bar: OffsetBar, limit: int | None) -> str:
    # Unsettled ranges are drawn last, so that nothing covers them.
    segments = sorted(
        bar.segments, key=lambda piece: piece.offset_range.status is OffsetStatus.OPEN
    )
    drawn = "".join(_rect(piece, limit) for piece in segments)
    if bar.limit is not None:
        x = bar.limit * WIDTH
        drawn += (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}" stroke="#000" '
            'stroke-width="1.5" stroke-dasharray="3 2" '
            'vector-effect="non-scaling-stroke"/>'
        )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" '
        f'shape-rendering="crispEdges" role="img" '
        f'aria-label="{_name(*bar.key)}"><rect width="{WIDTH}" height="{HEIGHT}" '
        f'fill="#fff" stroke="#c8d0d8"/>{drawn}</svg>'
    )


def _rect(segment: BarSegment, limit: int | None) -> str:
    offset_range = segment.offset_range
    left, width = segment.left * WIDTH, (segment.right - segment.left) * WIDTH
    fill = _fill(offset_range.status)
    if offset_range.status is OffsetStatus.OPEN:
        fill = colour_of(offset_range, limit)
        width = max(width, MIN_WIDTH)
        left = min(left, WIDTH - width)
    return (
        f'<rect x="{left:.2f}" width="{width:.2f}" height="{HEIGHT}" fill="{fill}">'
        f"<title>{_escaped(_tooltip(offset_range))}</title></rect>"
    )


def _fill(status: OffsetStatus) -> str:
    if status in (OffsetStatus.ARCHIVED, OffsetStatus.ABOVE):
        return f"url(#{status.value})"
    return STYLES[status].colour


def _tooltip(offset_range: OffsetRange) -> str:
    where = f"offsets {offset_range.first_offset:,} to {offset_range.last_offset:,}"
    words = f"{where}: {STYLES[offset_range.status].label}"
    if offset_range.delivery_count is not None:
        words += f", delivery count {offset_range.delivery_count}"
    return words


def _name(topic: str, partition: int) -> str:
    return _escaped(f"{topic}-{partition}")


def _escaped(text: str) -> str:
    """Escape HTML markup and characters that a page would not show."""
    return escape_html(escape_text(text))
