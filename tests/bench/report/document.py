"""The page: README.md beside the pictures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from tests.bench.report.goals import reached
from tests.bench.report.sessions import on_what
from tests.bench.report.summary import (
    Measurement,
    baseline_of,
    by_client,
    cpu,
    distinct,
    failed,
    field,
    over_base,
    picked,
    ratios,
    settled,
    speed,
)
from tests.bench.report.tables import (
    WIDTH,
    aligned,
    codec_of,
    column,
    hundredths,
    is_compressed,
    mib,
    milliseconds,
    size_of,
    table,
    thousands,
    title,
    told,
)

__all__ = ["document"]

# Records that a client may have in hand when it has read enough: a fetch of whole
# batches of a producer's, and what it had fetched ahead of one partition.
IN_HAND: Final = 2500

OPENING: Final = """\
Kafka and the client share one machine, described at the end, so compare clients: the
figures by themselves say little. They ran in turn, each client once in a round, each
round beginning with another. Figures are medians over the rounds, with the lowest and
the highest in brackets; ratios are taken within a round. Rounds: {rounds}. To measure
again: `tox -e bench`."""

Lines = Iterator[str]
Measurements = Sequence[Measurement]


def document(
    content: Mapping[str, Any], pictures: Sequence[str], notes: str = ""
) -> str:
    """Spell the whole page in Markdown; notes are what somebody says to the goals."""
    sessions, measurements = content["sessions"], content["measurements"]
    lines = [*_opening(sessions), *_goals(measurements, notes)]
    for section, names in SECTIONS.items():
        head, *rest = [*section(measurements)] or [""]
        if head:
            drawn = [name for name in names if name in pictures]
            shown = [f"![{Path(name).stem}]({name})" for name in drawn]
            lines += [head, *(line for each in shown for line in ("", each)), *rest]
    lines += [*_trouble(measurements), *on_what(sessions)]
    return "\n".join(lines).rstrip() + "\n"


def _rounds(settings: Mapping[str, Any]) -> str:
    """Say how many; older runs had as many of latency as of all else."""
    rounds, of_latency = settings["rounds"], settings.get("latency_rounds")
    if of_latency in (None, rounds):
        return f"{rounds}"
    return f"{rounds}, and {of_latency} of latency"


def _opening(sessions: Sequence[Mapping[str, Any]]) -> Lines:
    last = sessions[-1]
    yield f"# Performance, {last['begun'][:10]}"
    yield ""
    yield from wrap(OPENING.format(rounds=_rounds(last["settings"])), WIDTH)
    yield ""


def _goals(measurements: Measurements, notes: str) -> Lines:
    if rows := [*reached(measurements)]:
        yield from _head("Goals", "What this client is to reach, by medians of ratios.")
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
    found = picked(measurements, "throughput")
    if not found:
        return
    yield from _head(
        "Throughput",
        "A topic is read from end to end by one consumer; each record's value "
        "is looked at and each record acknowledged. CPU is the client's alone: "
        "all threads, user and system. Time runs from the first record to the "
        "last. Kafka's own is ShareConsumerPerformance, and its JVM still "
        "compiles at first.",
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
    yield f"{records:,} records, which take {stored:,} bytes each in the log."
    yield ""
    baseline = baseline_of(some)
    compared = ratios(some, speed, baseline) if baseline else {}
    columns = {
        "records/s": column(by_client(some, speed), thousands),
        f"times {title(baseline)}": column(compared, hundredths),
        "CPU s per million": column(by_client(some, cpu), hundredths),
        "peak memory, MiB": column(by_client(some, field("peak")), mib),
    }
    yield from table(columns)


def _first(measurements: Measurements) -> Lines:
    found = picked(measurements, "first")
    if not found:
        return
    yield from _head(
        "First record",
        "Seconds from the making of the consumer, its imports done, to the "
        "first record of a topic that has records already. For Java the JVM's "
        "start is not counted.",
    )
    yield from table({"seconds": column(by_client(found, field("first")), hundredths)})


def _latency(measurements: Measurements) -> Lines:
    found = picked(measurements, "latency")
    if not found:
        return
    yield from _head(
        "Latency",
        "Milliseconds from the producer's hands (librdkafka, no linger) to the "
        "consumer's, at a steady rate. The producer takes a part of the same "
        "machine.",
    )
    for rate in distinct(found, "wanted_rate"):
        some = picked(found, "latency", wanted_rate=rate)
        yield f"### {rate:,} records/s"
        yield ""
        columns = {
            name: column(by_client(some, field(name)), milliseconds)
            for name in ("p50", "p90", "p99")
        }
        rates = column(by_client(some, field("rate")), thousands)
        yield from table({**columns, "records/s that came": rates})


def _redelivery(measurements: Measurements) -> Lines:
    found = picked(measurements, "redelivery")
    if not found:
        return
    yield from _head(
        "Redelivery",
        "Milliseconds from a record's release until one of two consumers of the"
        " group has it again.",
    )
    yield from table(
        {
            name: column(by_client(found, field(name)), milliseconds)
            for name in ("p50", "p99", "max")
        }
    )


def _memory(measurements: Measurements) -> Lines:
    small, large = picked(measurements, "first"), picked(measurements, "throughput")
    if not (both := [*small, *large]):
        return
    yield from _head(
        "Memory",
        "MiB. The base is the process with its imports, before it makes a "
        "consumer; what reading takes is how far its peak is above. A JVM has "
        "no such moment.",
    )
    columns = {"base": column(by_client(both, field("base")), mib)}
    for size in distinct(small, "wanted"):
        columns[f"{size:,} of 100 bytes"] = column(by_client(small, over_base), mib)
    for size in distinct(large, "size"):
        some = [each for each in large if each["size"] == size]
        name = f"{max(each['records'] for each in some):,} of {size_of(size)}"
        columns[name] = column(by_client(some, over_base), mib)
    most = {
        name: mib(each.high) for name, each in by_client(both, field("peak")).items()
    }
    yield from table({**columns, "largest peak": most})


def _partitions(measurements: Measurements) -> Lines:
    yield from _growth(
        picked(measurements, "partitions"),
        "partitions",
        "Partitions",
        "The same number of records in more and more partitions, one consumer.",
    )


def _consumers(measurements: Measurements) -> Lines:
    yield from _growth(
        picked(measurements, "consumers"),
        "consumers",
        "Consumers in one process",
        "They share a topic of 50 partitions: sharecons' in one event loop, the others'"
        " with threads or goroutines. Peak memory is of the process.",
    )


def _growth(found: Measurements, label: str, title: str, text: str) -> Lines:
    if not found:
        return
    yield from _head(title, text)
    rows = [
        row
        for count in distinct(found, label)
        for row in _growth_rows(count, [e for e in found if e[label] == count])
    ]
    head = [label, "client", "records/s", "CPU s per million", "peak memory, MiB"]
    yield from aligned(head, rows)


def _growth_rows(count: int, some: Measurements) -> Iterator[list[str]]:
    cpus, peaks = by_client(some, cpu), by_client(some, field("peak"))
    for name, speeds in by_client(some, speed).items():
        yield [
            str(count),
            title(name),
            told(speeds, thousands),
            told(cpus.get(name), hundredths),
            told(peaks.get(name), mib),
        ]


def _slow(measurements: Measurements) -> Lines:
    found = [each for each in picked(measurements, "slow") if each["samples"]]
    if not found:
        return
    yield from _head(
        "A slow consumer",
        f"It waits {found[0]['pause'] * 1000:g} ms at each record, with many records "
        "before it; memory in MiB, looked at every second.",
    )
    rows = [
        [
            title(each["client"]),
            f"{len(each['samples'])}",
            f"{each['records']:,}",
            mib(settled(each)[0]),
            mib(settled(each)[-1]),
            mib(max(settled(each))),
            f"{each['cpu'] / each['seconds']:.1%}",
        ]
        for each in found
    ]
    head = ["client", "seconds", "records", "begins", "ends", "most", "of a core"]
    yield from aligned(head, rows)


def _trouble(measurements: Measurements) -> Lines:
    said = [*dict.fromkeys(_complaints(measurements))]
    if said:
        yield "## What did not work"
        yield ""
        yield from (f"- {each}" for each in said)
        yield ""


def _complaints(measurements: Measurements) -> Iterator[str]:
    for each in measurements:
        if reason := failed(each):
            yield f"{title(each['client'])}, {each['what']}: {reason}"
        elif "wanted" in each and (left := each["unacknowledged"] or 0) > IN_HAND:
            count = f"{left:,} of {each['wanted']:,}"
            yield f"{title(each['client'])}, {each['what']}: {count} not acknowledged"


SECTIONS: Final[Mapping[Callable[[Measurements], Lines], Sequence[str]]] = {
    _throughput: ("throughput.png", "cpu.png"),
    _first: ("first.png",),
    _latency: ("latency.png",),
    _redelivery: ("redelivery.png",),
    _memory: ("memory.png",),
    _partitions: ("partitions.png",),
    _consumers: ("consumers.png",),
    _slow: ("slow.png",),
}
