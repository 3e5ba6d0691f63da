"""Writing dead letters, and reading redriven records."""

from collections import Counter
from collections.abc import Iterable

from sharecons import ShareGroupAdmin
from sharecons._record import Headers, Record
from sharecons.copies.dead_letter_headers import (
    Origin,
    origin_headers,
    read_redrive_mark,
)
from sharecons.dead_letters.reader import log_ranges, read_records
from sharecons.producer.idempotent import OutgoingRecord
from sharecons.records.encoder import NewRecord
from sharecons.testing import EmbeddedBroker
from tests.producer.running import producing

__all__ = [
    "marks_of",
    "new_letter",
    "origin_of",
    "produce_letters",
    "records_of",
    "write_letters",
]

DEAD = "orders.dead"


def origin_of(number: int, **fields: object) -> Origin:
    """Return the origin of a dead letter: a record of orders, of two partitions."""
    origin = Origin(
        topic="orders",
        partition=number % 2,
        offset=number,
        group="billing",
        delivery_count=2,
        reason=f"failed: ValueError: {number}",
        timestamp=1_700_000_000_000 + number,
        attempts=5,
        exception="builtins.ValueError",
    )
    return origin._replace(**fields)


def new_letter(
    number: int, *, headers: Headers = (("trace", b"1"),), **fields: object
) -> NewRecord:
    return NewRecord(
        key=b"k%d" % number,
        value=b"v%d" % number,
        headers=(*headers, *origin_headers(origin_of(number, **fields))),
        timestamp=1_700_000_100_000 + number,
    )


async def write_letters(
    bootstrap_servers: str,
    letters: Iterable[NewRecord],
    *,
    topic: str = DEAD,
    partitions: int = 1,
) -> None:
    async with producing(bootstrap_servers) as producer:
        every = list(letters)
        for partition in range(partitions):
            own = every[partition::partitions]
            await producer.send_each(
                [OutgoingRecord(topic, each, partition) for each in own]
            )


def produce_letters(
    broker: EmbeddedBroker, letters: Iterable[NewRecord], *, partitions: int = 1
) -> None:
    """Write dead letters without a client: partition 0, 1, … in turn."""
    for number, letter in enumerate(letters):
        broker.produce(
            DEAD,
            [letter.value],
            keys=[letter.key],
            headers=letter.headers,
            partition=number % partitions,
            timestamp=letter.timestamp,
        )


async def records_of(admin: ShareGroupAdmin, topic: str) -> list[Record]:
    found: list[Record] = []
    for key, (start, end) in (await log_ranges(admin, topic)).items():
        async for records, *_ in read_records(admin, key, start, end):
            found += records
    return found


async def marks_of(admin: ShareGroupAdmin, topic: str) -> Counter[tuple[str, int, int]]:
    """Return how often each dead letter is in a topic."""
    marks = [read_redrive_mark(each.headers) for each in await records_of(admin, topic)]
    return Counter(
        (each.name, each.partition, each.offset) for each in marks if each is not None
    )
