"""The text and JSON of `sharecons groups inspect`."""

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
    Finding,
    GroupDeadLetters,
    GroupInspection,
    OffsetRange,
    OffsetStatus,
    PartitionInspection,
    Severity,
)
from sharecons.inspection.diagnosis.dead_letter_checks import describe_dead_letters
from sharecons.inspection.diagnosis.findings import format_age, format_duration
from sharecons.inspection.diagnosis.offset_states import Oldest
from sharecons.inspection.offset_bars import (
    LEGEND,
    STYLES,
    OffsetBar,
    cells_of,
    offset_bars_of,
)

__all__ = [
    "columns",
    "heading",
    "legend",
    "objects",
    "remarks",
    "rows",
    "write",
]

DEFAULT_BAR_WIDTH: Final = 40
MIN_BAR_WIDTH: Final = 12
MAX_BAR_WIDTH: Final = 100
"""Characters of an offset bar: without a terminal, and the limits on one."""

COLUMNS: Final = (
    Column("topic", is_section=True),
    Column("partition", "PART", align_right=True),
    Column("start_offset", "START", align_right=True),
    Column("end_offset", "END", align_right=True),
    Column("acknowledged", "ACKED", align_right=True),
    Column("archived", "ARCH", align_right=True),
    Column("available_or_locked", "OPEN", align_right=True),
    Column("above", align_right=True),
    Column("oldest", "OLDEST"),
    Column("bar", "OFFSETS"),
)

RARE_STATES: Final = (
    Column("archiving", "ARCHIVING", align_right=True),
    Column("unknown", "UNKNOWN", align_right=True),
)
"""Columns after ARCH that are shown if there are offsets in these states."""

OFFSETS: Final = (
    Column("topic", is_section=True),
    Column("partition", align_right=True),
    Column("first_offset", "FIRST", align_right=True),
    Column("last_offset", "LAST", align_right=True),
    Column("count", "OFFSETS", align_right=True),
    Column("status"),
    Column("delivery_count", "DELIVERIES", align_right=True),
)


def write(group: GroupInspection, *, as_json: bool, offsets: bool) -> None:
    """Write an inspection to stdout; `offsets` lists ranges instead of counts."""
    if as_json:
        write_table(objects(group), (), as_json=True)
        return
    _write_wrapped(heading(group))
    if group.dead_letters is not None:
        _write_wrapped(f"dead letters: {describe_dead_letters(group.dead_letters)}")
    if group.partitions.found:
        _write_partitions(group, offsets)
    for line in remarks(group):
        _write_wrapped(line)


def _write_partitions(group: GroupInspection, offsets: bool) -> None:
    output.write_line()
    if offsets:
        write_table(_range_rows(group), OFFSETS, as_json=False)
        return
    write_table(rows(group), columns(group), as_json=False)
    for line in ("", *legend(group), ""):
        output.write_line(line)


def _write_wrapped(line: str) -> None:
    """Write a line; wrap it between words on a terminal."""
    # Escape before wrapping: escaped characters are wider.
    line = escape(line, output.encoding())
    if not sys.stdout.isatty():
        output.write_line(line)
        return
    columns = get_terminal_size().columns
    for part in wrap(line, columns, subsequent_indent="    "):
        output.write_line(part)


def heading(group: GroupInspection) -> str:
    """Return a line with the group, its state and its configured limits."""
    facts = group.facts
    members = "1 member" if facts.members == 1 else f"{facts.members} members"
    parts = [f"group {group.group.group_id}: {group.group.state}, {members}"]
    if facts.record_locks is not None:
        parts.append(f"window: {facts.record_locks:,} offsets")
    if facts.delivery_limit is not None:
        parts.append(f"delivery limit: {facts.delivery_limit}")
    if facts.lock_duration is not None:
        parts.append(f"lock duration: {format_duration(facts.lock_duration)}")
    parts.append(f"source: {_SOURCES[group.source.value]}")
    return "; ".join(parts)


_SOURCES: Final = {
    "coordinator": "share coordinator",
    "records": "__share_group_state",
}


def columns(group: GroupInspection) -> tuple[Column, ...]:
    """Return the columns of `rows`; each offset is counted in one of them."""
    partitions = group.partitions.found.values()
    used = {each.status.value for partition in partitions for each in partition.ranges}
    rare = tuple(column for column in RARE_STATES if column.name in used)
    after = 1 + [column.name for column in COLUMNS].index("archived")
    return (*COLUMNS[:after], *rare, *COLUMNS[after:])


def rows(group: GroupInspection) -> list[Row]:
    """Return a row for each readable partition; offset bars fill the terminal."""
    bars = offset_bars_of(group)
    bare_rows = [_row(offset_bar, group.at) for offset_bar in bars]
    width = _bar_width(bare_rows, columns(group)[:-1])
    return [
        {**row, "bar": _bar_text(offset_bar, width)}
        for row, offset_bar in zip(bare_rows, bars, strict=True)
    ]


def _bar_width(bare_rows: list[Row], columns: tuple[Column, ...]) -> int:
    """Return how many characters of a line are left for an offset bar."""
    if not sys.stdout.isatty():
        return DEFAULT_BAR_WIDTH
    widths = [
        len(GAP)
        + max(len(column.heading), *(len(column.cell(row)) for row in bare_rows))
        for column in columns
        if bare_rows
    ]
    columns_available = get_terminal_size().columns - 1
    width = columns_available - sum(widths)
    if width < DEFAULT_BAR_WIDTH:
        # The topic then moves to a line above its rows.
        width = columns_available - sum(widths[1:])
    return max(MIN_BAR_WIDTH, min(MAX_BAR_WIDTH, width))


def legend(group: GroupInspection) -> list[str]:
    """Return lines that explain the signs and the scale of offset bars."""
    unicode = _can_encode_signs()
    bars = offset_bars_of(group)
    span = bars[0].span if bars else 1
    width = "1 offset" if span == 1 else f"{span:,} offsets"
    signs = (
        f"{STYLES[each].sign if unicode else STYLES[each].plain} {STYLES[each].label}"
        for each in LEGEND
    )
    return [
        "   ".join(signs),
        f"a bar is {width} wide; a digit is the delivery count of an open offset; "
        "a character for several offsets shows the one that blocks the others",
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
        *(
            f"topic {topic}: {finding.severity.name}: {finding.text}"
            for topic, finding in group.missing_topics.items()
        ),
        *(
            f"{key.topic}-{key.partition}: {finding.severity.name}: {finding.text}"
            for key, finding in found
        ),
    ]


def objects(group: GroupInspection) -> list[Row]:
    """Return a JSON object with all facts for each partition, and missing topic.

    The partition of a missing topic is null.
    """
    return [
        *(
            _partition_object(key, partition, group)
            for key, partition in group.partitions.found.items()
        ),
        *(_missing_topic_object(topic, group) for topic in group.missing_topics),
    ]


def _missing_topic_object(topic: str, group: GroupInspection) -> Row:
    return {
        "group": group.group.group_id,
        "topic": topic,
        "partition": None,
        "findings": [_finding_object(group.missing_topics[topic])],
    }


def _row(offset_bar: OffsetBar, at: float) -> Row:
    partition = offset_bar.partition
    oldest = partition.oldest
    age = None if oldest is None else format_age(oldest, at)
    return {**_counts(offset_bar.key, partition), "oldest": age}


def _counts(key: TopicPartition, partition: PartitionInspection) -> dict[str, Json]:
    return {
        "topic": key.topic,
        "partition": key.partition,
        "start_offset": partition.start_offset,
        "end_offset": partition.end_offset,
        **{each.value: partition.count(each) for each in LEGEND},
    }


def _bar_text(offset_bar: OffsetBar, width: int) -> str:
    unicode = _can_encode_signs()
    signs = [_sign(cell, unicode) for cell in cells_of(offset_bar, width)]
    return "".join(signs).rstrip()


def _sign(offset_range: OffsetRange | None, unicode: bool) -> str:
    if offset_range is None:
        return " "
    if offset_range.status is OffsetStatus.OPEN and offset_range.delivery_count:
        return str(min(9, offset_range.delivery_count))
    looks = STYLES[offset_range.status]
    return looks.sign if unicode else looks.plain


def _can_encode_signs() -> bool:
    signs = "".join(looks.sign for looks in STYLES.values())
    try:
        signs.encode(output.encoding())
    except UnicodeEncodeError:
        return False
    return True


def _oldest_object(oldest: Oldest | None, at: float) -> dict[str, Json]:
    age = None if oldest is None else oldest.age(at)
    return {
        "oldest_offset": None if oldest is None else oldest.offset,
        "oldest_timestamp": None if oldest is None or age is None else oldest.timestamp,
        "oldest_age": None if age is None else round(age, 3),
    }


def _partition_object(
    key: TopicPartition, partition: PartitionInspection, group: GroupInspection
) -> Row:
    oldest = partition.oldest
    return {
        "group": group.group.group_id,
        **_counts(key, partition),
        "log_start_offset": partition.log_start_offset,
        "window": partition.window,
        "delivery_counts": {
            str(count): number for count, number in partition.delivery_counts.items()
        },
        **_oldest_object(oldest, group.at),
        "members": list(partition.members),
        "source": group.source.value,
        "dead_letters": _dead_letters_object(group.dead_letters),
        "ranges": [_range_object(each) for each in partition.ranges],
        "findings": [_finding_object(finding) for finding in group.findings[key]],
    }


def _finding_object(finding: Finding) -> dict[str, Json]:
    return {
        "reason": finding.reason.value,
        "severity": finding.severity.name.lower(),
        "text": finding.text,
    }


def _dead_letters_object(
    dead_letters: GroupDeadLetters | None,
) -> dict[str, Json] | None:
    if dead_letters is None:
        return None
    error = dead_letters.error
    return {
        "topic": dead_letters.settings.topic,
        "copy_records": dead_letters.settings.copy_records,
        "count": dead_letters.count,
        "error": None if error is None else str(error),
    }


def _range_object(offset_range: OffsetRange) -> dict[str, Json]:
    return {
        "first_offset": offset_range.first_offset,
        "last_offset": offset_range.last_offset,
        "status": offset_range.status.value,
        "delivery_count": offset_range.delivery_count,
    }


def _range_rows(group: GroupInspection) -> list[Row]:
    return [
        {
            "topic": key.topic,
            "partition": key.partition,
            **_range_object(each),
            "count": each.count,
            "status": STYLES[each.status].label,
        }
        for key, partition in group.partitions.found.items()
        for each in partition.ranges
    ]
