"""The sections of the page about large records and about memory."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from tests.bench.large import Case
from tests.bench.memory import memory_bound
from tests.bench.report.summary import (
    Measurement,
    by_client,
    bytes_above_base,
    cpu_per_million,
    distinct,
    ratios,
    records_per_second,
    select,
)
from tests.bench.report.tables import (
    WIDTH,
    client_table,
    codec_of,
    format_column,
    markdown_table,
    mebibytes,
    size_of,
    title,
    two_decimals,
    whole_number,
)

__all__ = ["CASE_LABELS", "case_order", "case_title", "large_section", "memory_section"]

CASE_LABELS: Final = Case._fields

LARGE_TEXT: Final = """\
One consumer reads a topic of 6 partitions, as in Throughput. A batch is what the
producer sends for a partition, with `batch.size` and `linger.ms=5`: with 16 KiB (Java's
default) a record of 10 KiB or more is a batch of its own and is compressed alone.
confluent-kafka-python (librdkafka) verifies no checksums by default; with
`check.crcs=true` it does, as sharecons does, and franz-go by default. All
clients have their defaults and the same max.poll.records (see Settings). A fetch
requests up to 8 MiB in sharecons and in the raw ceiling, which decodes nothing, and 50
MiB in the others (`--clients` can name confluent-8mib). CPU is the time of all threads
of the client; memory is the peak above the process after its imports."""

MEMORY_TEXT: Final = """\
A consumer and a worker (one handler call at a time) with their default settings read a
topic of 8 partitions, with batches of 1 MiB on one broker. The handler sleeps 10 ms at
each record, or is fast and sleeps at some records. Peak memory above the process after
its imports, in MiB; the bound is the documented one (docs/consumer.md,
docs/worker-concurrency.md) for these records."""

Lines = Iterator[str]
Measurements = Sequence[Measurement]


def large_section(measurements: Measurements) -> Lines:
    """Yield the tables of the measurement `large`."""
    found = select(measurements, "large")
    if not found:
        return
    yield "## Large and compressed records"
    yield ""
    yield from wrap(LARGE_TEXT, WIDTH)
    yield ""
    cases = sorted(
        (Case(*each) for each in distinct(found, *CASE_LABELS)), key=case_order
    )
    for case in cases:
        yield from _case(case, select(found, "large", **case._asdict()))


def case_order(case: Case) -> tuple[object, ...]:
    """Return the sort key of cases: by batch, size, and uncompressed first."""
    return case.batch_size, case.size, case.codec != "none", case.codec


def case_title(case: Case) -> str:
    size, batch = size_of(case.size), size_of(case.batch_size)
    return f"{size}, {codec_of(case.codec)}, batches of {batch}"


def _case(case: Case, some: Measurements) -> Lines:
    yield f"### {case_title(case)}"
    yield ""
    records, stored, per_batch = (some[0][k] for k in ("wanted", "stored", "per_batch"))
    in_log = f"{stored:,} bytes in the log, {per_batch:g} in a batch"
    yield f"{records:,} records; each takes {in_log}."
    yield ""
    columns = {
        "records/s": format_column(by_client(some, records_per_second), whole_number),
        "times confluent": _ratio_column(some, "confluent", speed=True),
        "CPU s per million": format_column(
            by_client(some, cpu_per_million), two_decimals
        ),
        "CPU / confluent": _ratio_column(some, "confluent"),
        "CPU / check.crcs": _ratio_column(some, "confluent-crcs"),
        "CPU / raw": _ratio_column(some, "raw-8mib"),
        "memory, MiB": format_column(by_client(some, bytes_above_base), mebibytes),
    }
    yield from client_table({name: each for name, each in columns.items() if each})


def _ratio_column(
    some: Measurements, baseline: str, *, speed: bool = False
) -> dict[str, str]:
    value = records_per_second if speed else cpu_per_million
    return dict(format_column(ratios(some, value, baseline), two_decimals))


def memory_section(measurements: Measurements) -> Lines:
    """Yield the table of the measurement `memory`."""
    found = select(measurements, "memory")
    if not found:
        return
    yield "## Memory with large records"
    yield ""
    yield from wrap(MEMORY_TEXT, WIDTH)
    yield ""
    rows = [
        [
            title(each["client"]),
            f"{size_of(each['size'])}, {codec_of(each['codec'])}",
            _handler(each),
            f"{each['records']:,}",
            mebibytes(bytes_above_base(each) or 0.0),
            mebibytes(memory_bound(each)),
        ]
        for each in found
    ]
    head = ["client", "values", "handler sleeps", "records", "memory", "bound"]
    yield from markdown_table(head, rows)


def _handler(each: Measurement) -> str:
    pause = f"{each['pause'] * 1000:g} ms"
    if each["pause_every"] == 1:
        return f"{pause} at each record"
    return f"{pause} after {each['pause_every']:,} records"
