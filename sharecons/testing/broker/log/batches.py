"""Record batches: their headers, and the fields that a broker sets.

A `records` field is a sequence of batches (KIP-98, "Message Format"):

    base offset 8, length of the rest 4, leader epoch 4, magic 1, CRC 4,
    attributes 2, last offset delta 4, first timestamp 8, max timestamp 8,
    producer id 8, producer epoch 2, base sequence 4, number of records 4, records

The CRC covers the fields after it. So a broker can set offsets without changing it, but
has to compute it again when it sets timestamps. Kafka 4.0 removed older batch formats
(KIP-724).
"""

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from crc32c import crc32c

from sharecons.testing.broker.codec import ErrorCode

__all__ = [
    "AppendError",
    "BatchHeader",
    "decode_header",
    "encode_marker",
    "finalize",
    "has_valid_crc",
    "split_batches",
]

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
LENGTH_FIELD: Final = struct.Struct(">i")
OVERHEAD: Final = 12  # base offset and length, which the length does not include
SIZE_TO_MAGIC: Final = 17
MIN_LENGTH: Final = 14  # the minimum length in a batch of the first format
MAGIC: Final = 2

LEADER_EPOCH_OFFSET: Final = 12
MAGIC_OFFSET: Final = 16
CRC_OFFSET: Final = 17
ATTRIBUTES_OFFSET: Final = 21
MAX_TIMESTAMP_OFFSET: Final = 35

COMPRESSION: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20


class AppendError(Exception):
    """A batch is rejected; nothing has changed.

    `record_errors` has the invalid records of the batch with their errors; `setting` is
    the topic setting that does not allow the batch, if there is one.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        record_errors: Mapping[int, str] | None = None,
        setting: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.record_errors = record_errors or {}
        self.setting = setting


class BatchHeader(NamedTuple):
    """The 61 bytes before the records."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def last_sequence(self) -> int:
        """The last record's sequence; sequences wrap from the maximum int32 to 0."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def split_batches(records: bytes) -> list[bytes]:
    """Split a `records` field into batches; an incomplete last one is left out.

    Raises:
        AppendError: a batch has an unknown format or is too short.
    """
    batches = []
    at = 0
    while len(records) - at >= SIZE_TO_MAGIC:
        (length,) = LENGTH_FIELD.unpack_from(records, at + 8)
        if length < MIN_LENGTH:
            raise AppendError(
                ErrorCode.corrupt_message,
                f"Record size {length} is less than the minimum record overhead "
                f"({MIN_LENGTH})",
            )
        (magic,) = struct.unpack_from(">b", records, at + MAGIC_OFFSET)
        if not 0 <= magic <= MAGIC:
            raise AppendError(
                ErrorCode.corrupt_message, f"Invalid magic found in record: {magic}"
            )
        end = at + OVERHEAD + length
        if end > len(records):
            break
        batches.append(records[at:end])
        at = end
    return batches


def decode_header(batch: bytes) -> BatchHeader:
    """Decode a batch's header, even if the batch is invalid.

    Raises:
        AppendError: the batch has an older format, or no complete header.
    """
    if batch[MAGIC_OFFSET] != MAGIC:
        raise AppendError(
            ErrorCode.invalid_record,
            "Produce requests are only allowed to contain record batches with magic "
            f"version {MAGIC}",
        )
    if len(batch) < HEADER.size:
        raise AppendError(
            ErrorCode.corrupt_message,
            f"Record batch is corrupted (the size {len(batch)} is smaller than the "
            f"minimum allowed overhead {HEADER.size})",
        )
    return BatchHeader._make(HEADER.unpack_from(batch))


def has_valid_crc(batch: bytes, header: BatchHeader) -> bool:
    """Return whether the CRC of the batch is correct."""
    return crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:]) == header.crc


def finalize(
    batch: bytes, base_offset: int, leader_epoch: int, append_time: int | None = None
) -> bytes:
    """Set a batch's offset and leader epoch, and LogAppendTime if given."""
    batch_data = bytearray(batch)
    struct.pack_into(">q", batch_data, 0, base_offset)
    struct.pack_into(">i", batch_data, LEADER_EPOCH_OFFSET, leader_epoch)
    (attributes,) = struct.unpack_from(">h", batch_data, ATTRIBUTES_OFFSET)
    if append_time is not None:
        struct.pack_into(
            ">h", batch_data, ATTRIBUTES_OFFSET, attributes | LOG_APPEND_TIME
        )
        struct.pack_into(">q", batch_data, MAX_TIMESTAMP_OFFSET, append_time)
        _set_crc(batch_data)
    elif attributes & LOG_APPEND_TIME:
        # The producer must not set this attribute: the timestamps are its own.
        struct.pack_into(
            ">h", batch_data, ATTRIBUTES_OFFSET, attributes & ~LOG_APPEND_TIME
        )
        _set_crc(batch_data)
    return bytes(batch_data)


def encode_marker(
    producer_id: int, producer_epoch: int, committed: bool, timestamp: int
) -> bytes:
    """Encode the marker that ends a transaction, without its offset."""
    # One record without headers: attributes, both deltas, a key (version and type of
    # the marker) and a value (version and the coordinator's epoch). Varints are zigzag.
    key = struct.pack(">hh", 0, 1 if committed else 0)
    value = struct.pack(">hi", 0, 0)
    record = b"\0\0\0" + bytes([2 * len(key)]) + key
    record += bytes([2 * len(value)]) + value + b"\0"
    body = bytes([2 * len(record)]) + record
    header = BatchHeader(
        base_offset=0,
        length=HEADER.size - OVERHEAD + len(body),
        leader_epoch=0,
        magic=MAGIC,
        crc=0,
        attributes=TRANSACTIONAL | CONTROL,
        last_offset_delta=0,
        first_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=-1,
        record_count=1,
    )
    batch = bytearray(HEADER.pack(*header) + body)
    _set_crc(batch)
    return bytes(batch)


def _set_crc(batch: bytearray) -> None:
    crc = crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:])
    struct.pack_into(">I", batch, CRC_OFFSET, crc)
