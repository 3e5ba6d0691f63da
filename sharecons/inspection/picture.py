"""The picture of a share group, for terminals, screens, HTML and SVG.

Rule 1: everything that people see of an inspection is one rich renderable, made here.
Rule 2: nothing is shown by colour alone: a status has a sign, and a severity a word.

Theory of operation
-------------------
A picture has a heading, the bar of each partition beside its numbers, a legend, and
each finding. `partition_table` fits the bars to the width. A screen has a height: its
picture counts the partitions that do not fit, and cuts off long lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from sharecons.admin import ShareGroup
from sharecons.escaping import escape
from sharecons.group_state.group_facts import subscribers_of
from sharecons.group_state.stored_states import StateSource
from sharecons.inspection.diagnosis.dead_letter_checks import describe_dead_letters
from sharecons.inspection.diagnosis.findings import Reason, Severity
from sharecons.inspection.diagnosis.formats import format_duration
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.offset_bars import (
    STYLES,
    WINDOW_END,
    OffsetBar,
    StatusStyle,
    has_signs,
    offset_bars_of,
)
from sharecons.inspection.partition_rows import statuses_of
from sharecons.inspection.partition_table import draw_partitions, draw_ranges

__all__ = [
    "GroupPicture",
    "heading_of",
    "remarks_of",
    "scale_of",
    "styles_of",
    "unread_of",
]

INDENT: Final = 4
"""Characters before the second and later lines of a wrapped text."""

OTHER_LINES: Final = 7
"""Lines of a screen other than partitions and findings."""

MAX_ALIKE: Final = 3
"""Partitions of a topic whose findings for the same reason are all shown."""

_SOURCES: Final = {
    StateSource.COORDINATOR: "share coordinator",
    StateSource.RECORDS: "__share_group_state",
}

_SEVERITY_STYLES: Final = {
    Severity.NOTE: "",
    Severity.WARNING: "bold magenta",
    Severity.STALLED: "bold red",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPicture:
    """A picture of an inspection: `rich.print(GroupPicture(group=inspection))`.

    Attributes:
        title: text before the heading, e.g. the time of the inspection.
        offsets: list the ranges of offsets instead of drawing bars.
        with_errors: show what could not be read.
        encoding: characters that it lacks are escaped.
        max_bar_width: in characters.
        height: lines of the screen; None for a picture of any height.
    """

    group: GroupInspection
    title: str = ""
    offsets: bool = False
    with_errors: bool = True
    encoding: str = "utf-8"
    max_bar_width: int = 100
    height: int | None = None

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        heading = " ".join((self.title, heading_of(self.group))).strip()
        yield from self._wrapped(Text(self._escaped(heading), "bold"), console, options)
        if self.group.dead_letters is not None and self.height is None:
            text = f"dead letters: {describe_dead_letters(self.group.dead_letters)}"
            yield from self._wrapped(Text(self._escaped(text)), console, options)
        remarks = [
            line
            for remark in self._remarks()
            for line in self._wrapped(remark, console, options)
        ]
        if not self.group.partitions.found:
            yield from remarks
            return
        yield Text("")
        if self.offsets:
            yield from (*draw_ranges(self.group, self._escaped), Text(""), *remarks)
            return
        yield from self._bars(options.max_width, len(remarks))
        legend = list(self._legend())
        # On a screen the legend is last, where a low screen cuts the text off.
        texts = (legend, remarks) if self.height is None else (remarks, legend)
        for lines in texts:
            yield from (Text(""), *lines)

    def _bars(self, width: int, remarks: int) -> RenderResult:
        max_rows = None
        if self.height is not None:
            max_rows = max(3, self.height - OTHER_LINES - remarks)
        yield from draw_partitions(
            self.group,
            width,
            escaped=self._escaped,
            unicode=has_signs(self.encoding),
            max_bar_width=self.max_bar_width,
            max_rows=max_rows,
        )

    def _legend(self) -> RenderResult:
        """Yield the signs and the scale of the bars."""
        bars = offset_bars_of(self.group)
        yield Columns(
            [self._sign(each) for each in styles_of(self.group, bars)], padding=(0, 3)
        )
        yield Text(scale_of(bars))

    def _sign(self, style: StatusStyle) -> Text:
        sign = style.sign if has_signs(self.encoding) else style.plain
        return Text.assemble((sign, style.colour), " ", style.label)

    def _remarks(self) -> list[Text]:
        """Return the findings, the worst first, and what could not be read."""
        texts = [
            Text.assemble(
                f"{self._escaped(subject)}: ",
                (severity.name, _SEVERITY_STYLES[severity]),
                f": {self._escaped(text)}",
            )
            for subject, severity, text in remarks_of(self.group)
        ]
        if self.with_errors:
            texts += [Text(self._escaped(each)) for each in unread_of(self.group)]
        return texts if self.height is None else texts[: self.height // 3]

    def _wrapped(
        self, text: Text, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Yield the lines of a text, with a hanging indent; on a screen, one line."""
        if self.height is not None:
            text.no_wrap = True
            text.overflow = "ellipsis" if has_signs(self.encoding) else "crop"
            yield text
            return
        first, *others = text.wrap(console, max(1, options.max_width - INDENT))
        yield first
        for line in others:
            yield Padding(line, (0, 0, 0, INDENT), expand=False)

    def _escaped(self, text: str) -> str:
        return escape(text, self.encoding)


def heading_of(group: GroupInspection) -> str:
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
    parts.append(f"source: {_SOURCES[group.source]}")
    return "; ".join(parts)


def styles_of(group: GroupInspection, bars: Sequence[OffsetBar]) -> list[StatusStyle]:
    """Return what the legend of the bars explains."""
    styles = [STYLES[each] for each in statuses_of(group)]
    if any(bar.limit is not None and bar.limit < 1 for bar in bars):
        styles.append(WINDOW_END)
    return styles


def scale_of(bars: Sequence[OffsetBar]) -> str:
    """Return the sentence below the legend of the bars."""
    span = bars[0].span
    width = "1 offset" if span == 1 else f"{span:,} offsets"
    return (
        f"a bar is {width} wide; a digit is the delivery count of an open offset; "
        "a character for several offsets shows the offset that blocks the others; "
        "which offsets before START were archived is no longer stored"
    )


def remarks_of(group: GroupInspection) -> list[tuple[str, Severity, str]]:
    """Return subject, severity and text of each finding, the worst first.

    Findings of fine partitions are left out. If many partitions of a topic have a
    finding for the same reason, the first one stands for all. A group with members and
    without partitions is one of them.
    """
    alike: dict[tuple[str, Reason, Severity], list[tuple[int, str]]] = {}
    for key, findings in group.findings.items():
        for each in findings:
            if each.severity > Severity.FINE:
                place = key.topic, each.reason, each.severity
                alike.setdefault(place, []).append((key.partition, each.text))
    found = [
        (_subject(topic, partition, hidden), severity, text)
        for (topic, _, severity), texts in alike.items()
        for partition, text, hidden in _shown(texts)
    ]
    found.sort(key=lambda each: -each[1])
    if not (group.partitions or group.missing_topics or group.unread):
        found += _without_partitions(group.group)
    return [
        *(
            (f"topic {topic}", finding.severity, finding.text)
            for topic, finding in group.missing_topics.items()
        ),
        *found,
    ]


def _without_partitions(group: ShareGroup) -> Iterator[tuple[str, Severity, str]]:
    if subscribers_of(group):
        yield (
            f"group {group.group_id}",
            Severity.WARNING,
            "it has members and no partitions: they joined just now, or the brokers "
            "cannot create or write __share_group_state; `sharecons preflight` finds "
            "out",
        )


def _shown(texts: list[tuple[int, str]]) -> list[tuple[int, str, int]]:
    """Return partitions and texts to show, and for how many others each stands."""
    if len(texts) > MAX_ALIKE:
        return [(*texts[0], len(texts) - 1)]
    return [(*each, 0) for each in texts]


def _subject(topic: str, partition: int, others: int) -> str:
    name = f"{topic}-{partition}"
    return f"{name} and {others} more partitions" if others else name


def unread_of(group: GroupInspection) -> Iterator[str]:
    """Yield a text for each value that could not be read."""
    for key, error in group.partitions.errors.items():
        yield f"{key.topic}-{key.partition}: not readable: {error}"
    for error in group.unread:
        yield f"not readable: {error}"
