"""The Spark report: spark.md."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from tests.bench.report.environment import environment_section
from tests.bench.report.goals import Goal, relative_to
from tests.bench.report.summary import (
    Measurement,
    by_client,
    distinct,
    failure_reason,
    ratios,
    records_per_second,
    select,
)
from tests.bench.report.tables import (
    WIDTH,
    format_spread,
    markdown_table,
    size_of,
    two_decimals,
)
from tests.bench.spark.options import KAFKA, MODES, SHARE_GROUP, SINKS

__all__ = ["NAMES", "TITLES", "document", "tables"]

NAMES: Final = {SHARE_GROUP: "sharegroup", KAFKA: "Spark's Kafka source"}
TITLES: Final = {
    "ledger": "existing ledger",
    "stream": "stream",
}
# Rows per second, relative to Spark's Kafka source.
MINIMUM_RATIOS: Final = {"ledger": 1.0, "stream": 1.0}

OPENING: Final = """\
Spark reads a whole topic, once with `format("sharegroup")` and once with its own source
`format("kafka")`, which is written in Scala. Kafka and Spark share one machine (see
Environment), so compare the sources with each other; absolute figures depend on the
machine."""
HOW: Final = """\
*Existing ledger*: a batch query over the positions of a ledger that was filled before,
compared with a batch query of the Kafka source. *Stream*: Trigger.AvailableNow with a
new group and a new ledger, so that records are acquired, too, compared with
Trigger.AvailableNow of the Kafka source; both with the same maxOffsetsPerTrigger. Rows
are discarded (noop) or written to Parquet on the local disk. Time runs from the start
of the write or query to its end; for a stream it includes the start of a Python
process. The second that a broker takes to create a group is not included."""
ROUNDS: Final = """\
All measurements run in one session. A first round, which is not recorded, warms it up
and checks the number of rows in Parquet. Each round starts with a different pair, and
every second round with the other source. Figures are medians over the rounds, with
minimum and maximum in brackets; ratios are computed within a round. To repeat the
measurement: `tox -e bench-spark`."""

Lines = Iterator[str]
Measurements = Sequence[Measurement]


def document(content: Mapping[str, Any], picture: str, notes: str) -> str:
    """Return the page in Markdown; `notes` follow the table of goals."""
    sessions, measurements = content["sessions"], content["measurements"]
    lines = [f"# Spark's speed, {sessions[-1]['begun'][:10]}", ""]
    for text in (OPENING, HOW, ROUNDS):
        lines += [*wrap(text, WIDTH), ""]
    lines += [*_goals(measurements), *([notes, ""] if notes else [])]
    lines += ["## Results", ""]
    lines += [f"![{picture.partition('.')[0]}]({picture})", ""] if picture else []
    lines += [
        *tables(measurements),
        *_failures(measurements),
        *environment_section(sessions),
    ]
    return "\n".join(lines).rstrip() + "\n"


def tables(measurements: Measurements) -> Lines:
    """Yield a table for each value size."""
    for size in distinct(measurements, "size"):
        yield f"Thousand rows per second, values of {size_of(size)}:"
        yield ""
        rows = [
            row
            for what in MODES
            for sink in SINKS
            if (row := _row(select(measurements, what, size=size, sink=sink)))
        ]
        if rows:
            yield from markdown_table(["query", "sink", *NAMES.values(), "ratio"], rows)


def _row(found: Measurements) -> list[str]:
    if not found:
        return []
    speeds = by_client(found, records_per_second)
    cells = [format_spread(speeds.get(name), _thousands) for name in NAMES]
    ratio = format_spread(
        ratios(found, records_per_second, KAFKA).get(SHARE_GROUP), two_decimals
    )
    return [TITLES[found[0]["what"]], found[0]["sink"], *cells, ratio]


def _thousands(rows: float) -> str:
    return f"{rows / 1000:,.0f}"


def _goals(measurements: Measurements) -> Lines:
    rows = [
        [
            goal.name,
            goal.bound,
            format_spread(found, two_decimals),
            _verdict(goal.is_met(found)),
        ]
        for goal in _wanted(measurements)
        if (found := goal.compute(measurements)) is not None
    ]
    if rows:
        yield "## Goals"
        yield ""
        yield (
            "Median ratios of rows per second to the rows per second of Spark's Kafka "
            "source."
        )
        yield ""
        yield from markdown_table(["query", "goal", "measured", "result"], rows)


def _wanted(measurements: Measurements) -> Iterator[Goal]:
    for what, minimum in MINIMUM_RATIOS.items():
        for size in distinct(measurements, "size"):
            for sink in SINKS:
                compute = relative_to(
                    SHARE_GROUP, KAFKA, records_per_second, what, size=size, sink=sink
                )
                name = f"{TITLES[what]}, {sink}, {size_of(size)}"
                yield Goal(name, compute, minimum=minimum)


def _verdict(is_met: bool) -> str:
    return "reached" if is_met else "**not reached**"


def _failures(measurements: Measurements) -> Lines:
    if failures := [
        _failure_line(each) for each in measurements if failure_reason(each)
    ]:
        yield "## Failures"
        yield ""
        yield from dict.fromkeys(failures)
        yield ""


def _failure_line(each: Measurement) -> str:
    where = f"{each['what']}, {each['sink']}, {size_of(each['size'])}"
    return f"- {NAMES[each['client']]}, {where}: {failure_reason(each)}"
