"""Groups with acquired or accepted records, and the names of brokers' errors."""

from contextlib import asynccontextmanager

from sharecons import ShareConsumer
from sharecons.protocol.codes import Code

__all__ = ["accept_records", "acquired", "code_of"]


def code_of(result):
    """Return the name of the broker's error, or None."""
    return None if result.error is None else Code(result.error.code).name


@asynccontextmanager
async def acquired(kafka, group, topic, count):
    """Yield a consumer and the first `count` records, acquired but unacknowledged."""
    async with ShareConsumer(
        topic,
        group_id=group,
        bootstrap_servers=kafka.bootstrap_servers,
        acknowledgement="explicit",
        auto_offset_reset="earliest",
    ) as consumer:
        records = []
        while len(records) < count:
            records += await consumer.poll(timeout=20, max_records=count)
        yield consumer, records


async def accept_records(kafka, group, topic, count):
    """Accept records in a group, and leave the group."""
    async with acquired(kafka, group, topic, count) as (consumer, records):
        for record in records:
            record.accept()
        await consumer.commit()
