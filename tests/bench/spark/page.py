"""The page: spark.md beside its picture."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from tests.bench.report.goals import Goal, beside
from tests.bench.report.sessions import on_what
from tests.bench.report.summary import (
    Measurement,
    by_client,
    distinct,
    failed,
    picked,
    ratios,
    speed,
)
from tests.bench.report.tables import WIDTH, aligned, hundredths, size_of, told
from tests.bench.spark.options import OURS, SINKS, THEIRS, WAYS

__all__ = ["NAMES", "TITLES", "document", "tables"]

NAMES: Final = {OURS: "sharegroup", THEIRS: "Spark's Kafka source"}
TITLES: Final = {
    "ledger": "ledger that is there",
    "stream": "stream with acquiring",
}
LEAST: Final = {"ledger": 1.0, "stream": 0.7}  # of the other source's rows a second

OPENING: Final = """\
Spark reads a topic from end to end, by `format("sharegroup")` and by its own source,
`format("kafka")`, which is Scala. Kafka and Spark share one machine, described at the
end, so compare the two: the figures by themselves say little."""
HOW: Final = """\
*Ledger that is there*: a batch by positions of a ledger that was filled before, beside
a batch of the other source. *Stream with acquiring*: Trigger.AvailableNow with a group
that has read nothing and a new ledger, beside the other's Trigger.AvailableNow; both
with the same maxOffsetsPerTrigger. Rows go nowhere (noop) or into Parquet on the
machine's disk. Time runs from the start of the write or the query to its end; that of a
stream has the start of a Python process in it. That a broker takes a second to make a
group, once in its life, is not counted."""
ROUNDS: Final = """\
All ran in turn in one warm session: a first round was thrown away, and in it Parquet's
rows were counted. Each round begins with another pair, and every second one with the
other source. Figures are medians over the rounds, with the lowest and the highest in
brackets; ratios are taken within a round. To measure again: `tox -e bench-spark`."""

Lines = Iterator[str]
Measurements = Sequence[Measurement]


def document(content: Mapping[str, Any], picture: str, notes: str) -> str:
    """Spell the whole page in Markdown; notes are what somebody says to the goals."""
    sessions, measurements = content["sessions"], content["measurements"]
    lines = [f"# Spark's speed, {sessions[-1]['begun'][:10]}", ""]
    for text in (OPENING, HOW, ROUNDS):
        lines += [*wrap(text, WIDTH), ""]
    lines += [*_goals(measurements), *([notes, ""] if notes else [])]
    lines += ["## Measured", ""]
    lines += [f"![{picture.partition('.')[0]}]({picture})", ""] if picture else []
    lines += [*tables(measurements), *_trouble(measurements), *on_what(sessions)]
    return "\n".join(lines).rstrip() + "\n"


def tables(measurements: Measurements) -> Lines:
    """Give a table for each size of value."""
    for size in distinct(measurements, "size"):
        yield f"Thousand rows a second, values of {size_of(size)}:"
        yield ""
        rows = [
            row
            for what in WAYS
            for sink in SINKS
            if (row := _row(picked(measurements, what, size=size, sink=sink)))
        ]
        if rows:
            yield from aligned(["", "sink", *NAMES.values(), "ratio"], rows)


def _row(found: Measurements) -> list[str]:
    if not found:
        return []
    speeds = by_client(found, speed)
    cells = [told(speeds.get(name), _thousands) for name in NAMES]
    ratio = told(ratios(found, speed, THEIRS).get(OURS), hundredths)
    return [TITLES[found[0]["what"]], found[0]["sink"], *cells, ratio]


def _thousands(rows: float) -> str:
    return f"{rows / 1000:,.0f}"


def _goals(measurements: Measurements) -> Lines:
    rows = [
        [goal.name, goal.bound, told(found, hundredths), _verdict(goal.is_met(found))]
        for goal in _wanted(measurements)
        if (found := goal.figure(measurements)) is not None
    ]
    if rows:
        yield "## Goals"
        yield ""
        yield "Rows a second by those of Spark's own source, medians of ratios."
        yield ""
        yield from aligned(["what", "goal", "measured", ""], rows)


def _wanted(measurements: Measurements) -> Iterator[Goal]:
    for what, least in LEAST.items():
        for size in distinct(measurements, "size"):
            for sink in SINKS:
                figure = beside(OURS, THEIRS, speed, what, size=size, sink=sink)
                name = f"{TITLES[what]}, {sink}, {size_of(size)}"
                yield Goal(name, figure, least=least)


def _verdict(is_met: bool) -> str:
    return "reached" if is_met else "**not reached**"


def _trouble(measurements: Measurements) -> Lines:
    if said := [_complaint(each) for each in measurements if failed(each)]:
        yield "## What did not work"
        yield ""
        yield from dict.fromkeys(said)
        yield ""


def _complaint(each: Measurement) -> str:
    where = f"{each['what']}, {each['sink']}, {size_of(each['size'])}"
    return f"- {NAMES[each['client']]}, {where}: {failed(each)}"
