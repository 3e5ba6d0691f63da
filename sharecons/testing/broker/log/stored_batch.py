"""A batch or message in a log, and the offsets of its records."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sharecons.testing.broker.log.batches import decode_header
from sharecons.testing.broker.log.messages import decode_messages, is_message
from sharecons.testing.broker.log.records import RecordHead, decode_heads

__all__ = ["StoredBatch", "heads_of", "stored"]

NO_PRODUCER: Final = -1
NO_EPOCH: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """A batch of the log, as consumers receive it.

    A message of format 0 or 1 counts as a batch, with the records in it.
    """

    base_offset: int
    last_offset: int
    data: bytes
    leader_epoch: int
    max_timestamp: int
    producer_id: int
    is_transactional: bool
    is_control: bool
    record_count: int


def stored(data: bytes) -> StoredBatch:
    """Return the stored form of a batch that has its offsets.

    Raises:
        ValueError: it is a damaged message of format 0 or 1.
    """
    return _stored_message(data) if is_message(data) else _stored_batch(data)


def heads_of(data: bytes) -> Iterator[RecordHead]:
    """Yield the heads of the records in a batch or message.

    Raises:
        ValueError: they are invalid.
    """
    if not is_message(data):
        yield from decode_heads(data, decode_header(data))
        return
    for each in decode_messages(data):
        yield RecordHead(each.timestamp, each.offset, each.key is not None)


def _stored_batch(data: bytes) -> StoredBatch:
    header = decode_header(data)
    return StoredBatch(
        base_offset=header.base_offset,
        last_offset=header.base_offset + header.last_offset_delta,
        data=data,
        leader_epoch=max(header.leader_epoch, NO_EPOCH),
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        record_count=header.record_count,
    )


def _stored_message(data: bytes) -> StoredBatch:
    heads = list(heads_of(data))
    return StoredBatch(
        base_offset=heads[0].offset,
        last_offset=int.from_bytes(data[:8], "big"),
        data=data,
        leader_epoch=NO_EPOCH,
        max_timestamp=max(head.timestamp for head in heads),
        producer_id=NO_PRODUCER,
        is_transactional=False,
        is_control=False,
        record_count=len(heads),
    )
