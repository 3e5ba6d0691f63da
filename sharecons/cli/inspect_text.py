"""A group from inside, in lines and in JSON."""

import sys
from shutil import get_terminal_size
from textwrap import wrap
from typing import Final

from sharecons._record import TopicPartition
from sharecons.cli import output
from sharecons.cli.tables import GAP, Column, Json, Row
from sharecons.cli.tables import write as write_table
from sharecons.escaping import escape
from sharecons.inspection import (
    GroupInspection,
    OffsetRange,
    OffsetStatus,
    PartitionInspection,
    Severity,
)
from sharecons.inspection.offset_bars import (
    LEGEND,
    STYLES,
    OffsetBar,
    cells_of,
    offset_bars_of,
)
from sharecons.protocol.diagnosis.findings import format_duration

__all__ = ["columns", "heading", "legend", "objects", "remarks", "rows", "write"]

STRIP: Final = 40
NARROWEST: Final = 12
WIDEST: Final = 100
"""Characters of a strip: where there is no terminal, and on one."""

COLUMNS: Final = (
    Column("topic", head=True),
    Column("partition", "PART", right=True),
    Column("start_offset", "START", right=True),
    Column("end_offset", "END", right=True),
    Column("acknowledged", "ACKED", right=True),
    Column("archived", "ARCH", right=True),
    Column("available_or_locked", "OPEN", right=True),
    Column("above", right=True),
    Column("oldest", "OLDEST"),
    Column("strip", "OFFSETS"),
)

RARE: Final = (
    Column("archiving", "ARCHIVING", right=True),
    Column("unknown", "UNKNOWN", right=True),
)
"""Columns behind ARCH, where there are offsets in these states."""

OFFSETS: Final = (
    Column("topic", head=True),
    Column("partition", right=True),
    Column("first_offset", "FIRST", right=True),
    Column("last_offset", "LAST", right=True),
    Column("count", "OFFSETS", right=True),
    Column("standing"),
    Column("delivery_count", "DELIVERIES", right=True),
)


def write(group: GroupInspection, *, as_json: bool, offsets: bool) -> None:
    """Write to stdout what was seen; `offsets` lists them instead of counting."""
    if as_json:
        write_table(objects(group), (), as_json=True)
        return
    _write_wrapped(heading(group))
    if not group.partitions.found:
        return
    output.write_line()
    if offsets:
        write_table(_listed(group), OFFSETS, as_json=False)
    else:
        write_table(rows(group), columns(group), as_json=False)
        for line in ("", *legend(group), ""):
            output.write_line(line)
    for line in remarks(group):
        _write_wrapped(line)


def _write_wrapped(line: str) -> None:
    """Write a line, broken between words on a terminal."""
    # Escaped before it is broken: escapes are wider.
    line = escape(line, output.encoding())
    if not sys.stdout.isatty():
        output.write_line(line)
        return
    columns = get_terminal_size().columns
    for part in wrap(line, columns, subsequent_indent="    "):
        output.write_line(part)


def heading(group: GroupInspection) -> str:
    """Say in a line what was looked at, and what its limits are."""
    facts = group.facts
    members = "1 member" if facts.members == 1 else f"{facts.members} members"
    parts = [f"group {group.group.group_id}: {group.group.state}, {members}"]
    if facts.record_locks is not None:
        parts.append(f"a window of {facts.record_locks:,} offsets")
    if facts.delivery_limit is not None:
        parts.append(f"{facts.delivery_limit} deliveries at most")
    if facts.lock_duration is not None:
        parts.append(f"locks of {format_duration(facts.lock_duration)}")
    parts.append(f"read from {_SOURCES[group.source.value]}")
    return "; ".join(parts)


_SOURCES: Final = {
    "coordinator": "the share coordinator",
    "records": "__share_group_state",
}


def columns(group: GroupInspection) -> tuple[Column, ...]:
    """Return the columns of `rows`: all offsets are in one of them."""
    insides = group.partitions.found.values()
    used = {each.status.value for inside in insides for each in inside.ranges}
    rare = tuple(column for column in RARE if column.name in used)
    behind = 1 + [column.name for column in COLUMNS].index("archived")
    return (*COLUMNS[:behind], *rare, *COLUMNS[behind:])


def rows(group: GroupInspection) -> list[Row]:
    """Give a row for each partition that could be seen; strips fill the terminal."""
    strips = offset_bars_of(group)
    bare = [_row(strip, group.at) for strip in strips]
    width = _room(bare, columns(group)[:-1])
    return [
        {**row, "strip": _drawn(strip, width)}
        for row, strip in zip(bare, strips, strict=True)
    ]


def _room(bare: list[Row], columns: tuple[Column, ...]) -> int:
    """Reckon how many characters are left for a strip."""
    if not sys.stdout.isatty():
        return STRIP
    needed = [
        len(GAP) + max(len(column.heading), *(len(column.cell(row)) for row in bare))
        for column in columns
        if bare
    ]
    whole = get_terminal_size().columns - 1
    room = whole - sum(needed)
    if room < STRIP:
        # The topic then stands above its rows.
        room = whole - sum(needed[1:])
    return max(NARROWEST, min(WIDEST, room))


def legend(group: GroupInspection) -> list[str]:
    """Return lines that explain the strips: their width, and their signs."""
    known = _can_draw()
    strips = offset_bars_of(group)
    span = strips[0].span if strips else 1
    width = "1 offset" if span == 1 else f"{span:,} offsets"
    signs = (
        f"{STYLES[each].sign if known else STYLES[each].plain} {STYLES[each].label}"
        for each in LEGEND
    )
    return [
        "   ".join(signs),
        f"a strip is {width} wide; a digit is how often an open offset was delivered; "
        "where one place stands for several offsets, it shows what the others wait for",
    ]


def remarks(group: GroupInspection) -> list[str]:
    """Return a line for each finding that is at least a note, the worst first."""
    found = [
        (key, finding)
        for key, findings in group.findings.items()
        for finding in findings
        if finding.severity > Severity.FINE
    ]
    found.sort(key=lambda each: -each[1].severity)
    return [
        f"{key.topic}-{key.partition}: {finding.severity.name}: {finding.text}"
        for key, finding in found
    ]


def objects(group: GroupInspection) -> list[Row]:
    """Give an object for each partition, with all that is known of it."""
    return [
        _object(key, inside, group) for key, inside in group.partitions.found.items()
    ]


def _row(strip: OffsetBar, at: float) -> Row:
    inside = strip.partition
    oldest = inside.oldest
    age = None if oldest is None else format_duration(at - oldest.timestamp / 1000)
    return {**_counts(strip.key, inside), "oldest": age}


def _counts(key: TopicPartition, inside: PartitionInspection) -> dict[str, Json]:
    return {
        "topic": key.topic,
        "partition": key.partition,
        "start_offset": inside.start_offset,
        "end_offset": inside.end_offset,
        **{each.value: inside.count(each) for each in LEGEND},
    }


def _drawn(strip: OffsetBar, width: int) -> str:
    known = _can_draw()
    signs = [_sign(cell, known) for cell in cells_of(strip, width)]
    return "".join(signs).rstrip()


def _sign(stretch: OffsetRange | None, known: bool) -> str:
    if stretch is None:
        return " "
    if stretch.status is OffsetStatus.OPEN and stretch.delivery_count:
        return str(min(9, stretch.delivery_count))
    looks = STYLES[stretch.status]
    return looks.sign if known else looks.plain


def _can_draw() -> bool:
    signs = "".join(looks.sign for looks in STYLES.values())
    try:
        signs.encode(output.encoding())
    except UnicodeEncodeError:
        return False
    return True


def _object(
    key: TopicPartition, inside: PartitionInspection, group: GroupInspection
) -> Row:
    oldest = inside.oldest
    return {
        "group": group.group.group_id,
        **_counts(key, inside),
        "log_start_offset": inside.log_start_offset,
        "window": inside.window,
        "delivery_counts": {
            str(count): number for count, number in inside.delivery_counts.items()
        },
        "oldest_offset": None if oldest is None else oldest.offset,
        "oldest_timestamp": None if oldest is None else oldest.timestamp,
        "oldest_age": None
        if oldest is None
        else round(group.at - oldest.timestamp / 1000, 3),
        "members": list(inside.members),
        "source": group.source.value,
        "stretches": [_stretch(each) for each in inside.ranges],
        "findings": [
            {
                "reason": finding.reason.value,
                "severity": finding.severity.name.lower(),
                "text": finding.text,
            }
            for finding in group.findings[key]
        ],
    }


def _stretch(stretch: OffsetRange) -> dict[str, Json]:
    return {
        "first_offset": stretch.first_offset,
        "last_offset": stretch.last_offset,
        "standing": stretch.status.value,
        "delivery_count": stretch.delivery_count,
    }


def _listed(group: GroupInspection) -> list[Row]:
    return [
        {
            "topic": key.topic,
            "partition": key.partition,
            **_stretch(each),
            "count": each.count,
            "standing": STYLES[each.status].label,
        }
        for key, inside in group.partitions.found.items()
        for each in inside.ranges
    ]
