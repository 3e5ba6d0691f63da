"""The sections of the page about large records and about memory."""

from collections.abc import Iterator, Sequence
from typing import Final

from tests.bench.large import Case
from tests.bench.memory import memory_bound
from tests.bench.report.summary import (
    Measurement,
    bytes_above_base,
    cpu_per_million,
    distinct,
    records_per_second,
    select,
)
from tests.bench.report.tables import (
    ABOVE_BASE,
    CPU,
    SPEED,
    Column,
    client_table,
    codec_of,
    head,
    markdown_table,
    mebibytes,
    size_of,
    title,
)

__all__ = [
    "LARGE_TEXT",
    "MEMORY_TEXT",
    "case_title",
    "cases_of",
    "large_tables",
    "memory_table",
]

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

LARGE_COLUMNS: Final = (
    SPEED,
    Column("times confluent", records_per_second, beside="confluent"),
    CPU,
    Column("CPU / confluent", cpu_per_million, beside="confluent"),
    Column("CPU / check.crcs", cpu_per_million, beside="confluent-crcs"),
    Column("CPU / raw", cpu_per_million, beside="raw-8mib"),
    ABOVE_BASE,
)

Lines = Iterator[str]
Measurements = Sequence[Measurement]


def cases_of(found: Measurements) -> list[Case]:
    """Return the cases by batch and size, uncompressed ones first."""
    cases = (Case(*each) for each in distinct(found, *Case._fields))
    return sorted(
        cases, key=lambda c: (c.batch_size, c.size, c.codec != "none", c.codec)
    )


def case_title(case: Case) -> str:
    size, batch = size_of(case.size), size_of(case.batch_size)
    return f"{size}, {codec_of(case.codec)}, batches of {batch}"


def large_tables(found: Measurements) -> Lines:
    """Yield the tables of the measurement `large`."""
    for case in cases_of(found):
        some = select(found, "large", **case._asdict())
        records, stored, batch = (some[0][k] for k in ("wanted", "stored", "per_batch"))
        yield from head(case_title(case), 3)
        in_log = f"{stored:,} bytes in the log, {batch:g} in a batch"
        yield f"{records:,} records; each takes {in_log}."
        yield ""
        yield from client_table(some, *LARGE_COLUMNS)


def memory_table(found: Measurements) -> Lines:
    """Yield the table of the measurement `memory`."""
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
    columns = ["client", "values", "handler sleeps", "records", "memory", "bound"]
    yield from markdown_table(columns, rows)


def _handler(each: Measurement) -> str:
    pause = f"{each['pause'] * 1000:g} ms"
    if each["pause_every"] == 1:
        return f"{pause} at each record"
    return f"{pause} after {each['pause_every']:,} records"
