"""Writing records that a worker gives up to a dead-letter topic."""

from dataclasses import dataclass
from typing import Any

from sharecons.config.validation import check_topic
from sharecons.net.producer import IdempotentProducer, RecordPosition
from sharecons.worker.dead_letter_headers import (
    Origin,
    origin_headers,
    without_origin,
)

__all__ = ["DeadLetterQueue", "write_dead_letter"]


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """Where a worker writes the records that it gives up.

    The topic must exist. A dead letter has the record's key, value and headers, and
    headers that say which record it was and why it was given up.

    Raises:
        ConfigurationError: the name is not a topic's.
    """

    topic: str

    def __post_init__(self) -> None:
        check_topic("dead_letter", self.topic)


async def write_dead_letter(
    producer: IdempotentProducer, queue: DeadLetterQueue, record: Any, origin: Origin
) -> RecordPosition:
    """Write a record; raises as `IdempotentProducer.send`.

    `record` has bytes as key and value.
    """
    return await producer.send(
        queue.topic,
        record.value,
        key=record.key,
        headers=(*without_origin(record.headers), *origin_headers(origin)),
    )
