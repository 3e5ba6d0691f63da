"""The page: README.md beside the pictures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from tests.bench.options import STANDARD
from tests.bench.report.environment import environment_section
from tests.bench.report.goals import goal_table
from tests.bench.report.large import large_section, memory_section
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
    ratios,
    records_per_second,
    select,
    settled_samples,
)
from tests.bench.report.tables import (
    WIDTH,
    client_table,
    codec_of,
    format_column,
    format_spread,
    is_compressed,
    markdown_table,
    mebibytes,
    milliseconds,
    size_of,
    title,
    two_decimals,
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

Lines = Iterator[str]
Measurements = Sequence[Measurement]


def document(
    content: Mapping[str, Any], pictures: Sequence[str], notes: str = ""
) -> str:
    """Return the page in Markdown; `notes` follow the table of goals."""
    sessions, measurements = content["sessions"], content["measurements"]
    lines = [*_opening(sessions), *_goals(measurements, notes)]
    for section, names in SECTIONS.items():
        head, *rest = [*section(measurements)] or [""]
        if head:
            drawn = [name for name in names if name in pictures]
            shown = [f"![{Path(name).stem}]({name})" for name in drawn]
            lines += [head, *(line for each in shown for line in ("", each)), *rest]
    lines += [*_failures(measurements), *environment_section(sessions)]
    return "\n".join(lines).rstrip() + "\n"


def _rounds(settings: Mapping[str, Any]) -> str:
    """Return the number of rounds; older runs have no separate one for latency."""
    rounds, of_latency = settings["rounds"], settings.get("latency_rounds")
    if of_latency in (None, rounds):
        return f"{rounds}"
    return f"{rounds}, for latency {of_latency}"


def _opening(sessions: Sequence[Mapping[str, Any]]) -> Lines:
    last = sessions[-1]
    yield f"# Performance, {last['begun'][:10]}"
    yield ""
    settings = last["settings"]
    scenario = settings.get("scenario", STANDARD)
    command = "tox -e bench"
    if scenario != STANDARD:
        command += f" -- --scenario {scenario}"
    text = OPENING.format(rounds=_rounds(settings), command=command)
    yield from wrap(text, WIDTH)
    yield ""


def _goals(measurements: Measurements, notes: str) -> Lines:
    if rows := [*goal_table(measurements)]:
        yield from _head(
            "Goals",
            "Bounds for the medians of sharecons. Ratios without a record size are for "
            "uncompressed records of 100 bytes; confluent is confluent-kafka-python.",
        )
        yield from rows
    if notes:
        yield notes
        yield ""


def _head(title: str, text: str) -> Lines:
    yield f"## {title}"
    yield ""
    yield from wrap(text, WIDTH)
    yield ""


def _throughput(measurements: Measurements) -> Lines:
    found = select(measurements, "throughput")
    if not found:
        return
    yield from _head(
        "Throughput",
        "One consumer reads a whole topic, reads each record's value and acknowledges "
        "each record. CPU is the time of the client process: all threads, user and "
        "system. Time runs from the first record to the last. Kafka's own client is "
        "ShareConsumerPerformance; its time includes the JVM's compilation.",
    )
    combinations = distinct(found, "size", "codec")
    for size, codec in sorted(combinations, key=lambda c: (c[0], is_compressed(c[1]))):
        some = [
            each for each in found if (each["size"], each["codec"]) == (size, codec)
        ]
        yield from _throughput_of(size, codec, some)


def _throughput_of(size: int, codec: str, some: Measurements) -> Lines:
    records = max(each["records"] for each in some)
    stored = max(each["stored"] for each in some)
    yield f"### {size_of(size)}, {codec_of(codec)}"
    yield ""
    yield f"{records:,} records; each takes {stored:,} bytes in the log."
    yield ""
    baseline = baseline_of(some)
    compared = ratios(some, records_per_second, baseline) if baseline else {}
    columns = {
        "records/s": format_column(by_client(some, records_per_second), whole_number),
        f"times {title(baseline)}": format_column(compared, two_decimals),
        "CPU s per million": format_column(
            by_client(some, cpu_per_million), two_decimals
        ),
        "peak memory, MiB": format_column(by_client(some, field("peak")), mebibytes),
    }
    yield from client_table(columns)


def _first(measurements: Measurements) -> Lines:
    found = select(measurements, "first")
    if not found:
        return
    yield from _head(
        "First record",
        "Seconds from the creation of the consumer, after all imports, to the first "
        "record of a topic that already has records. For Java, the start of the JVM "
        "is not included.",
    )
    yield from client_table(
        {"seconds": format_column(by_client(found, field("first")), two_decimals)}
    )


def _latency(measurements: Measurements) -> Lines:
    found = select(measurements, "latency")
    if not found:
        return
    yield from _head(
        "Latency",
        "Milliseconds from the producer (librdkafka, no linger) to the application, at "
        "a steady rate. The producer runs on the same machine.",
    )
    for rate in distinct(found, "wanted_rate"):
        some = select(found, "latency", wanted_rate=rate)
        yield f"### {rate:,} records/s"
        yield ""
        columns = {
            name: format_column(by_client(some, field(name)), milliseconds)
            for name in ("p50", "p90", "p99")
        }
        rates = format_column(by_client(some, field("rate")), whole_number)
        yield from client_table({**columns, "records/s received": rates})


def _redelivery(measurements: Measurements) -> Lines:
    found = select(measurements, "redelivery")
    if not found:
        return
    yield from _head(
        "Redelivery",
        "Milliseconds from a record's release until one of the group's two consumers "
        "receives it again.",
    )
    yield from client_table(
        {
            name: format_column(by_client(found, field(name)), milliseconds)
            for name in ("p50", "p99", "max")
        }
    )


def _memory(measurements: Measurements) -> Lines:
    small, large = select(measurements, "first"), select(measurements, "throughput")
    if not (both := [*small, *large]):
        return
    yield from _head(
        "Memory",
        "MiB. The base is the process after its imports, before it creates a consumer. "
        "The columns for reading are peak memory above the base. The base does not "
        "apply to a JVM.",
    )
    columns = {"base": format_column(by_client(both, field("base")), mebibytes)}
    for size in distinct(small, "wanted"):
        columns[f"{size:,} of 100 bytes"] = format_column(
            by_client(small, bytes_above_base), mebibytes
        )
    for size in distinct(large, "size"):
        some = [each for each in large if each["size"] == size]
        name = f"{max(each['records'] for each in some):,} of {size_of(size)}"
        columns[name] = format_column(by_client(some, bytes_above_base), mebibytes)
    maximum = {
        name: mebibytes(each.high)
        for name, each in by_client(both, field("peak")).items()
    }
    yield from client_table({**columns, "largest peak": maximum})


def _partitions(measurements: Measurements) -> Lines:
    yield from _growth(
        select(measurements, "partitions"),
        "partitions",
        "Partitions",
        "The same number of records in topics with more and more partitions, read by "
        "one consumer. Ratios are to confluent-kafka-python.",
    )


def _consumers(measurements: Measurements) -> Lines:
    found = select(measurements, "consumers")
    if not found:
        return
    yield from _head(
        "Consumers in one process",
        "The consumers share a topic with 50 partitions. Consumers of sharecons run in "
        "one event loop, the others in threads or goroutines. Several consumers wait "
        "until each of them has received a record, and read a fifth of the records; "
        "time, CPU and records count from then. Ratios are to confluent-kafka-python. "
        "Peak memory is the peak of the process.",
    )
    sizes = sorted({label_of(each, "size") for each in found})
    for size in sizes:
        yield f"### Consumers: {size_of(size)}, uncompressed"
        yield ""
        some = [each for each in found if label_of(each, "size") == size]
        yield from _growth_table(some, "consumers")


def _growth(found: Measurements, label: str, title: str, text: str) -> Lines:
    if found:
        yield from _head(title, text)
        yield from _growth_table(found, label)


def _growth_table(found: Measurements, label: str) -> Lines:
    rows = [
        row
        for count in distinct(found, label)
        for row in _growth_rows(count, [e for e in found if e[label] == count])
    ]
    head = [label, "client", *("records/s", "ratio", "CPU s per million", "ratio")]
    yield from markdown_table([*head, "peak memory, MiB"], rows)


def _growth_rows(count: int, some: Measurements) -> Iterator[list[str]]:
    cpus, peaks = by_client(some, cpu_per_million), by_client(some, field("peak"))
    speed_ratios = ratios(some, records_per_second, "confluent")
    cpu_ratios = ratios(some, cpu_per_million, "confluent")
    for name, speeds in by_client(some, records_per_second).items():
        yield [
            str(count),
            title(name),
            format_spread(speeds, whole_number),
            format_spread(speed_ratios.get(name), two_decimals),
            format_spread(cpus.get(name), two_decimals),
            format_spread(cpu_ratios.get(name), two_decimals),
            format_spread(peaks.get(name), mebibytes),
        ]


def _slow(measurements: Measurements) -> Lines:
    found = [each for each in select(measurements, "slow") if each["samples"]]
    if not found:
        return
    yield from _head(
        "A slow consumer",
        f"It sleeps {found[0]['pause'] * 1000:g} ms at each record and has a large "
        "backlog. Memory in MiB, sampled every second.",
    )
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
    head = ["client", "seconds", "records", "first", "last", "peak", "CPU of a core"]
    yield from markdown_table(head, rows)


def _failures(measurements: Measurements) -> Lines:
    failures = [*dict.fromkeys(_failure_lines(measurements))]
    if failures:
        yield "## Failures"
        yield ""
        yield from (f"- {each}" for each in failures)
        yield ""


def _failure_lines(measurements: Measurements) -> Iterator[str]:
    for each in measurements:
        if reason := failure_reason(each):
            yield f"{title(each['client'])}, {each['what']}: {reason}"
        elif "wanted" in each and (
            left := each["unacknowledged"] or 0
        ) > MAX_UNACKNOWLEDGED * each.get("consumers", 1):
            count = f"{left:,} of {each['wanted']:,}"
            yield f"{title(each['client'])}, {each['what']}: {count} not acknowledged"


SECTIONS: Final[Mapping[Callable[[Measurements], Lines], Sequence[str]]] = {
    _throughput: ("throughput.png", "cpu.png"),
    _first: ("first.png",),
    _latency: ("latency.png",),
    _redelivery: ("redelivery.png",),
    _memory: ("memory.png",),
    large_section: ("large.png", "large-cpu.png"),
    memory_section: (),
    _partitions: ("partitions.png",),
    _consumers: ("consumers.png",),
    _slow: ("slow.png",),
}
