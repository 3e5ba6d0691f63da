"""Writing records that a worker gives up to a dead-letter topic."""

from typing import Any, Final, Protocol

from sharecons._record import Headers
from sharecons.copies.dead_letter_headers import (
    Origin,
    earlier_topics,
    origin_headers,
    reference_headers,
    without_origin,
)
from sharecons.copies.dead_letter_queue import DeadLetterQueue
from sharecons.errors import BrokerError, ConfigurationError
from sharecons.producer.records import RecordPosition
from sharecons.protocol.codes import Code

__all__ = [
    "TOO_LARGE",
    "check_no_return",
    "value_bytes",
    "write_dead_letter",
]

MAX_DEAD_LETTERED: Final = 8
"""How often a record becomes a dead letter, of one worker after another."""

SHORT_REASON: Final = 100
"""Characters of the reason in the smallest dead letter."""

TOO_LARGE: Final = (Code.MESSAGE_TOO_LARGE, Code.RECORD_LIST_TOO_LARGE)


def check_no_return(origin: Origin, queue: DeadLetterQueue) -> None:
    """Check that a record is not a dead letter that would return to its topic.

    Two workers that have each other's source as dead-letter topic would write the same
    record for ever, and so would any cycle of workers.

    Raises:
        ConfigurationError: it would.
    """
    if queue.topic in earlier_topics(origin):
        raise ConfigurationError(
            f"the record is a dead letter of topic {queue.topic!r}, so it cannot be "
            "one in that topic again: consume another topic, or change dead_letter"
        )
    if origin.dead_lettered > MAX_DEAD_LETTERED:
        raise ConfigurationError(
            f"the record was a dead letter {origin.dead_lettered - 1} times: the "
            "workers write it to each other's topics"
        )


class RecordSender(Protocol):
    """A `Producer`, or the `IdempotentProducer` of a worker."""

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
    ) -> RecordPosition: ...


def value_bytes(record: Any) -> bytes | None:
    """Return a record's value as bytes; it is a view with `values="memoryview"`."""
    value: bytes | memoryview | None = record.value
    return value.tobytes() if isinstance(value, memoryview) else value


async def write_dead_letter(
    producer: RecordSender, queue: DeadLetterQueue, record: Any, origin: Origin
) -> RecordPosition:
    """Write a record; raises as the producer's `send`.

    If the topic does not take a record of this size, it is written without the
    traceback; otherwise as a reference to its source, a record with the headers of the
    origin only; at last with a short reason. Raises the error of the last one.

    `record` has bytes as key, and bytes or a memoryview as value.
    """
    origin = origin._replace(written_to=queue.topic)
    brief = origin._replace(traceback=None)
    content = value_bytes(record)
    own = without_origin(record.headers)
    minimal = brief._replace(reason=brief.reason[:SHORT_REASON])
    for value, key, headers in (
        (content, record.key, (*own, *origin_headers(origin))),
        (content, record.key, (*own, *origin_headers(brief))),
        (None, None, reference_headers(brief)),
    ):
        try:
            return await producer.send(queue.topic, value, key=key, headers=headers)
        except BrokerError as error:
            if error.code not in TOO_LARGE:
                raise
    return await producer.send(queue.topic, None, headers=reference_headers(minimal))
