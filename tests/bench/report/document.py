"""The page: README.md beside the pictures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.bench.options import STANDARD
from tests.bench.report.environment import environment_section
from tests.bench.report.goals import goal_table
from tests.bench.report.large import (
    LARGE_TEXT,
    MEMORY_TEXT,
    large_tables,
    memory_table,
)
from tests.bench.report.summary import (
    Measurement,
    baseline_of,
    by_client,
    bytes_above_base,
    cpu_per_million,
    distinct,
    failure_reason,
    field,
    label_of,
    records_per_second,
    select,
    settled_samples,
)
from tests.bench.report.tables import (
    CPU,
    PEAK,
    SPEED,
    Column,
    client_rows,
    client_table,
    codec_of,
    head,
    is_compressed,
    markdown_table,
    mebibytes,
    milliseconds,
    paragraph,
    size_of,
    title,
    whole_number,
)

__all__ = ["document"]

# Unacknowledged records that a consumer can hold at the end of a run: one fetch of
# whole producer batches, and the records prefetched from one partition.
MAX_UNACKNOWLEDGED: Final = 2500

OPENING: Final = """\
Kafka and the clients share one machine (see Environment), so compare clients with each
other; absolute figures depend on the machine. Each client runs once per round, and each
round starts with a different client. Figures are medians over the rounds, with minimum
and maximum in brackets; ratios are computed within a round. Rounds: {rounds}. To repeat
the measurement: `{command}`."""
GOALS: Final = """\
Bounds for the medians of sharecons. Ratios without a record size are for uncompressed
records of 100 bytes; confluent is confluent-kafka-python."""

Lines = Iterator[str]
Measurements = Sequence[Measurement]


def document(
    content: Mapping[str, Any], pictures: Sequence[str], notes: str = ""
) -> str:
    """Return the page in Markdown; `notes` follow the table of goals."""
    sessions, measurements = content["sessions"], content["measurements"]
    lines = [*_opening(sessions[-1])]
    if rows := [*goal_table(measurements)]:
        lines += [*head("Goals"), *paragraph(GOALS), *rows]
    lines += [notes, ""] if notes else []
    for section in SECTIONS:
        lines += section.lines(measurements, pictures)
    if failures := dict.fromkeys(_failures(measurements)):
        lines += [*head("Failures"), *failures, ""]
    lines += environment_section(sessions)
    return "\n".join(lines).rstrip() + "\n"


def _opening(session: Mapping[str, Any]) -> Lines:
    settings = session["settings"]
    rounds, of_latency = settings["rounds"], settings.get("latency_rounds")
    if of_latency not in (None, rounds):
        rounds = f"{rounds}, for latency {of_latency}"
    command, scenario = "tox -e bench", settings.get("scenario", STANDARD)
    if scenario != STANDARD:
        command += f" -- --scenario {scenario}"
    yield from head(f"Performance, {session['begun'][:10]}", 1)
    yield from paragraph(OPENING.format(rounds=rounds, command=command))


class Section(NamedTuple):
    """A section of the page.

    Attributes:
        title: its heading.
        measured: the measurements that it shows.
        text: its first paragraph; `{pause}` is the pause of the first measurement.
        tables: yields the rest from the valid measurements.
        pictures: names of files, between the heading and the text.
    """

    title: str
    measured: Sequence[str]
    text: str
    tables: Callable[[Measurements], Lines]
    pictures: Sequence[str] = ()

    def lines(self, measurements: Measurements, pictures: Sequence[str]) -> Lines:
        """Yield the section, or nothing if nothing was measured."""
        found = [each for what in self.measured for each in select(measurements, what)]
        if "slow" in self.measured:
            found = [each for each in found if each["samples"]]
        if not found:
            return
        yield from head(self.title)
        for name in self.pictures:
            if name in pictures:
                yield f"![{Path(name).stem}]({name})"
                yield ""
        pause = found[0].get("pause", 0.0) * 1000
        yield from paragraph(self.text.format(pause=f"{pause:g} ms"))
        yield from self.tables(found)


def _throughput(found: Measurements) -> Lines:
    baseline = baseline_of(found)
    times = Column(f"times {title(baseline)}", records_per_second, beside=baseline)
    compared = [times] if baseline else []
    combinations = distinct(found, "size", "codec")
    for size, codec in sorted(combinations, key=lambda c: (c[0], is_compressed(c[1]))):
        some = [e for e in found if (e["size"], e["codec"]) == (size, codec)]
        records = max(each["records"] for each in some)
        stored = max(each["stored"] for each in some)
        yield from head(f"{size_of(size)}, {codec_of(codec)}", 3)
        yield f"{records:,} records; each takes {stored:,} bytes in the log."
        yield ""
        yield from client_table(some, SPEED, *compared, CPU, PEAK)


def _first(found: Measurements) -> Lines:
    yield from client_table(found, Column("seconds", field("first")))


def _latency(found: Measurements) -> Lines:
    names = ("p50", "p90", "p99")
    columns = [Column(name, field(name), milliseconds) for name in names]
    rate_column = Column("records/s received", field("rate"), whole_number)
    for rate in distinct(found, "wanted_rate"):
        yield from head(f"{rate:,} records/s", 3)
        some = select(found, "latency", wanted_rate=rate)
        yield from client_table(some, *columns, rate_column)


def _redelivery(found: Measurements) -> Lines:
    names = ("p50", "p99", "max")
    columns = [Column(name, field(name), milliseconds) for name in names]
    yield from client_table(found, *columns)


def _memory(found: Measurements) -> Lines:
    columns = {"base": Column("", field("base"), mebibytes).cells(found)}
    above = Column("", bytes_above_base, mebibytes)
    small, large = select(found, "first"), select(found, "throughput")
    for size in distinct(small, "wanted"):
        columns[f"{size:,} of 100 bytes"] = above.cells(small)
    for size in distinct(large, "size"):
        some = [each for each in large if each["size"] == size]
        name = f"{max(each['records'] for each in some):,} of {size_of(size)}"
        columns[name] = above.cells(some)
    columns["largest peak"] = {
        name: mebibytes(each.high)
        for name, each in by_client(found, field("peak")).items()
    }
    yield from markdown_table(["client", *columns], client_rows([*columns.values()]))


GROWTH_COLUMNS: Final = (
    SPEED,
    Column("ratio", records_per_second, beside="confluent"),
    CPU,
    Column("ratio", cpu_per_million, beside="confluent"),
    PEAK,
)


def _partitions(found: Measurements) -> Lines:
    yield from _growth(found, "partitions")


def _consumers(found: Measurements) -> Lines:
    for size in sorted({label_of(each, "size") for each in found}):
        yield from head(f"Consumers: {size_of(size)}, uncompressed", 3)
        yield from _growth(select(found, "consumers", size=size), "consumers")


def _growth(found: Measurements, label: str) -> Lines:
    rows = []
    for count in distinct(found, label):
        some = [each for each in found if each[label] == count]
        cells = [column.cells(some) for column in GROWTH_COLUMNS]
        rows += [[str(count), *row] for row in client_rows(cells)]
    names = [column.name for column in GROWTH_COLUMNS]
    yield from markdown_table([label, "client", *names], rows)


def _slow(found: Measurements) -> Lines:
    rows = [
        [
            title(each["client"]),
            f"{len(each['samples'])}",
            f"{each['records']:,}",
            mebibytes(settled_samples(each)[0]),
            mebibytes(settled_samples(each)[-1]),
            mebibytes(max(settled_samples(each))),
            f"{each['cpu'] / each['seconds']:.1%}",
        ]
        for each in found
    ]
    names = ["client", "seconds", "records", "first", "last", "peak", "CPU of a core"]
    yield from markdown_table(names, rows)


def _failures(measurements: Measurements) -> Lines:
    for each in measurements:
        reason = failure_reason(each)
        left, consumers = each.get("unacknowledged") or 0, each.get("consumers", 1)
        if not reason and left > MAX_UNACKNOWLEDGED * consumers:
            reason = f"{left:,} of {each['wanted']:,} not acknowledged"
        if reason:
            yield f"- {title(each['client'])}, {each['what']}: {reason}"


SECTIONS: Final = (
    Section(
        "Throughput",
        ["throughput"],
        "One consumer reads a whole topic, reads each record's value and acknowledges "
        "each record. CPU is the time of the client process: all threads, user and "
        "system. Time runs from the first record to the last. Kafka's own client is "
        "ShareConsumerPerformance; its time includes the JVM's compilation.",
        _throughput,
        ["throughput.png", "cpu.png"],
    ),
    Section(
        "First record",
        ["first"],
        "Seconds from the creation of the consumer, after all imports, to the first "
        "record of a topic that already has records. For Java, the start of the JVM "
        "is not included.",
        _first,
        ["first.png"],
    ),
    Section(
        "Latency",
        ["latency"],
        "Milliseconds from the producer (librdkafka, no linger) to the application, at "
        "a steady rate. The producer runs on the same machine.",
        _latency,
        ["latency.png"],
    ),
    Section(
        "Redelivery",
        ["redelivery"],
        "Milliseconds from a record's release until one of the group's two consumers "
        "receives it again.",
        _redelivery,
        ["redelivery.png"],
    ),
    Section(
        "Memory",
        ["first", "throughput"],
        "MiB. The base is the process after its imports, before it creates a consumer. "
        "The columns for reading are peak memory above the base. The base does not "
        "apply to a JVM.",
        _memory,
        ["memory.png"],
    ),
    Section(
        "Large and compressed records",
        ["large"],
        LARGE_TEXT,
        large_tables,
        ["large.png", "large-cpu.png"],
    ),
    Section("Memory with large records", ["memory"], MEMORY_TEXT, memory_table),
    Section(
        "Partitions",
        ["partitions"],
        "The same number of records in topics with more and more partitions, read by "
        "one consumer. Ratios are to confluent-kafka-python.",
        _partitions,
        ["partitions.png"],
    ),
    Section(
        "Consumers in one process",
        ["consumers"],
        "The consumers share a topic with 50 partitions. Consumers of sharecons run in "
        "one event loop, the others in threads or goroutines. Several consumers wait "
        "until each of them has received a record, and read a fifth of the records; "
        "time, CPU and records count from then. Ratios are to confluent-kafka-python. "
        "Peak memory is the peak of the process.",
        _consumers,
        ["consumers.png"],
    ),
    Section(
        "A slow consumer",
        ["slow"],
        "It sleeps {pause} at each record and has a large backlog. Memory in MiB, "
        "sampled every second.",
        _slow,
        ["slow.png"],
    ),
)
