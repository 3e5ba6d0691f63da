"""The Spark report: spark.md."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.bench.report.environment import environment_section
from tests.bench.report.goals import Goal, goal_table, relative_to
from tests.bench.report.summary import (
    Measurement,
    distinct,
    failure_reason,
    records_per_second,
    select,
)
from tests.bench.report.tables import (
    Column,
    head,
    markdown_table,
    paragraph,
    size_of,
)
from tests.bench.spark.options import KAFKA, PAIRS, SHARE_GROUP, SINKS

__all__ = ["NAMES", "TITLES", "document", "tables"]

NAMES: Final = {SHARE_GROUP: "sharegroup", KAFKA: "Spark's Kafka source"}
TITLES: Final = {
    "ledger": "existing ledger",
    "stream": "stream",
}
MINIMUM_RATIO: Final = 1.0  # rows per second, relative to Spark's Kafka source

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

GOALS: Final = (
    "Median ratios of rows per second to the rows per second of Spark's Kafka source."
)

Lines = Iterator[str]
Measurements = Sequence[Measurement]


SPEED: Final = Column("", records_per_second, lambda rows: f"{rows / 1000:,.0f}")
RATIO: Final = Column("", records_per_second, beside=KAFKA)


def document(content: Mapping[str, Any], picture: str, notes: str) -> str:
    """Return the page in Markdown; `notes` follow the table of goals."""
    sessions, measurements = content["sessions"], content["measurements"]
    lines = [*head(f"Spark's speed, {sessions[-1]['begun'][:10]}", 1)]
    for text in (OPENING, HOW, ROUNDS):
        lines += paragraph(text)
    if rows := [*goal_table(measurements, _goals(measurements), "query")]:
        lines += [*head("Goals"), GOALS, "", *rows]
    lines += [notes, ""] if notes else []
    lines += head("Results")
    lines += [f"![{picture.partition('.')[0]}]({picture})", ""] if picture else []
    lines += tables(measurements)
    if failures := dict.fromkeys(_failures(measurements)):
        lines += [*head("Failures"), *failures, ""]
    lines += environment_section(sessions)
    return "\n".join(lines).rstrip() + "\n"


def tables(measurements: Measurements) -> Lines:
    """Yield a table for each value size."""
    for size in distinct(measurements, "size"):
        yield f"Thousand rows per second, values of {size_of(size)}:"
        yield ""
        rows = []
        for what, sink in PAIRS:
            if found := select(measurements, what, size=size, sink=sink):
                speeds, ratio = SPEED.cells(found), RATIO.cells(found)
                cells = [speeds.get(name, "-") for name in NAMES]
                ratio_cell = ratio.get(SHARE_GROUP, "-")
                rows.append([TITLES[what], sink, *cells, ratio_cell])
        if rows:
            yield from markdown_table(["query", "sink", *NAMES.values(), "ratio"], rows)


def _goals(measurements: Measurements) -> Iterator[Goal]:
    for what in TITLES:
        for size in distinct(measurements, "size"):
            for sink in SINKS:
                compute = relative_to(
                    SHARE_GROUP, KAFKA, records_per_second, what, size=size, sink=sink
                )
                name = f"{TITLES[what]}, {sink}, {size_of(size)}"
                yield Goal(name, compute, minimum=MINIMUM_RATIO)


def _failures(measurements: Measurements) -> Lines:
    for each in measurements:
        if reason := failure_reason(each):
            where = f"{each['what']}, {each['sink']}, {size_of(each['size'])}"
            yield f"- {NAMES[each['client']]}, {where}: {reason}"
