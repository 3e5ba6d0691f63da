"""Decodes one partition's records in a ShareFetch response (KIP-932, "ShareFetch").

The response has two independent parts. One is a slice of the log: record batches (see
`batch_header`), or messages of older formats (see `message_sets`), of which the last
can be truncated. The other lists the offsets that this consumer acquired, with their
delivery counts. A batch can contain several acquired ranges, records that other
consumers acquired, gaps left by compaction, and transaction markers.

`decode` combines them. It finds the batches, skips those without an acquired offset,
verifies, decompresses and decodes the others (`record_decoder`), and accounts for every
acquired offset (`offset_accounting`).

A batch is used as a whole or not at all. After a damaged batch, decoding continues with
the next one. `decode` does not raise, whatever the bytes are.
"""

from collections.abc import Sequence
from typing import final

from crc32c import crc32c

from sharecons._record import AckTarget, Record
from sharecons.records.batch_header import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LAST_OFFSET,
    MAGIC,
    PREFIX_SIZE,
    SMALLEST_LENGTH,
    Header,
)
from sharecons.records.compression import decompress
from sharecons.records.errors import UNREADABLE, DamagedError
from sharecons.records.large_records import LARGE, read_large_records
from sharecons.records.message_sets import LAST_MAGIC, check_message, to_batch
from sharecons.records.offset_accounting import Decoded, OffsetAccounting, Undecodable
from sharecons.records.record_decoder import Span, read_records

__all__ = ["Decoded", "Undecodable", "decode"]


def decode(
    payload: bytes | memoryview,
    acquired: Sequence[tuple[int, int, int]],
    topic: str,
    partition: int,
    ack_target: AckTarget,
    value_views: bool = False,
) -> Decoded:
    """Decode the acquired records; each acquired offset is in one part of the result.

    Args:
        payload: the partition's Records field; empty for null. The records hold no
            reference to it, except with `value_views`.
        acquired: first offset, last offset and delivery count of each acquired range,
            ascending and disjoint.
        ack_target: the lease that the records belong to.
        value_views: values are read-only memoryviews, of the payload or of a
            decompressed batch, instead of bytes.
    """
    return _PayloadReader(
        payload, acquired, topic, partition, ack_target, value_views
    ).read()


def _read_records(
    header: Header,
    checksummed: bytes | memoryview,
    spans: list[Span],
    topic: str,
    partition: int,
    ack_target: AckTarget,
    records: list[Record],
    value_views: bool,
) -> int:
    """Decompress a batch and decode its records, as `read_records` does.

    `checksummed` is the part of the batch that the checksum covers.
    """
    start = HEADER_SIZE - CRC_START
    codec = header.attributes & CODEC_MASK
    data = checksummed
    if codec:
        data = decompress(codec, checksummed[start:])
        start = 0
    if value_views or (not codec and len(data) >= header.count * LARGE):
        return read_large_records(
            header,
            memoryview(data),
            start,
            spans,
            topic,
            partition,
            ack_target,
            records,
            value_views,
        )
    # The copy is cheap: one batch is small and in the CPU's cache after the checksum.
    # Slices of bytes are faster than slices of any other type.
    copy = data if isinstance(data, bytes) else data.tobytes()
    return read_records(
        header, copy, start, spans, topic, partition, ack_target, records
    )


@final
class _PayloadReader:
    __slots__ = (
        "_account",
        "_ack_target",
        "_partition",
        "_payload",
        "_skipped",
        "_topic",
        "_value_views",
    )

    def __init__(
        self,
        payload: bytes | memoryview,
        acquired: Sequence[Span],
        topic: str,
        partition: int,
        ack_target: AckTarget,
        value_views: bool,
    ) -> None:
        view = memoryview(payload)
        self._payload = view.toreadonly() if value_views else view
        self._value_views = value_views
        self._topic = topic
        self._partition = partition
        self._ack_target = ack_target
        self._account = OffsetAccounting(acquired)
        # The previous batch, if it was skipped without verifying its checksum.
        self._skipped: Header | None = None

    def read(self) -> Decoded:
        payload = self._payload
        account = self._account
        size = len(payload)
        position = 0
        while size - position >= PREFIX_SIZE:
            header = Header(payload, position)
            if header.length < SMALLEST_LENGTH:
                account.add_unreadable_rest(f"invalid batch length {header.length}")
                break
            if header.end > size:
                break
            if header.base_offset != account.settled:
                self._verify_skipped()
            if header.magic <= LAST_MAGIC:
                self._read_message(header)
            elif header.magic != MAGIC:
                reason = f"{UNREADABLE}unknown record batch format {header.magic}"
                account.add_damaged(header.base_offset, header.base_offset, reason)
            elif header.end - position < HEADER_SIZE:
                reason = "the batch is shorter than its header"
                account.add_damaged(header.base_offset, header.base_offset, reason)
            else:
                self._read_batch(header)
            position = header.end
        return account.finish()

    def _read_batch(self, header: Header) -> None:
        account = self._account
        first, last = header.base_offset, header.last_offset
        try:
            self._check_header(header)
            # This also covers the gap before the batch: it is one only if this header
            # is correct.
            if not account.has_acquired_before(last):
                account.settled = last + 1
                self._skipped = header
                return
            self._skipped = None
            self._settle(header, self._verify_checksum(header))
        except DamagedError as error:
            account.add_damaged(first, last, str(error))

    def _read_message(self, header: Header) -> None:
        """Read a message of format 0 or 1; a compressed one contains others.

        Its first offset is known only after decompression.
        """
        self._verify_skipped()
        account = self._account
        last = header.base_offset
        message = self._payload[header.position : header.end].tobytes()
        try:
            if last >= account.settled and not account.has_acquired_before(last):
                check_message(message)
                account.settled = last + 1
                return
            batch = to_batch(message)
            converted = Header(batch, 0)
            self._check_header(converted)
            self._settle(converted, batch[CRC_START:])
        except DamagedError as error:
            account.add_damaged_message(last, str(error))

    def _settle(self, header: Header, checksummed: bytes | memoryview) -> None:
        account = self._account
        spans = account.overlapping_spans(header.base_offset, header.last_offset)
        account.settle_batch(
            header, spans, self._read_records(header, checksummed, spans)
        )

    def _check_header(self, header: Header) -> None:
        if header.base_offset < self._account.settled:
            raise DamagedError("the batch overlaps a previous one")
        if not header.base_offset <= header.last_offset <= LAST_OFFSET:
            raise DamagedError("the batch has invalid offsets")
        if header.count < 0:
            raise DamagedError("the batch has a negative number of records")

    def _verify_checksum(self, header: Header) -> memoryview:
        """Verify a batch's checksum; return the bytes that it covers."""
        checksummed = self._payload[header.position + CRC_START : header.end]
        checksum: int = crc32c(checksummed)  # built without the library's types
        if checksum != header.crc:
            raise DamagedError("the checksum does not match")
        return checksummed

    def _read_records(
        self, header: Header, checksummed: bytes | memoryview, spans: list[Span]
    ) -> int:
        """Decode the records inside the spans; return their number."""
        # Control batches (transaction markers) contain no records for applications.
        if len(spans) == 1 or header.attributes & CONTROL:
            return 0
        decoded = self._account.decoded
        records = decoded.records
        before = len(records)
        try:
            decoded.size += _read_records(
                header,
                checksummed,
                spans,
                self._topic,
                self._partition,
                self._ack_target,
                records,
                self._value_views,
            )
        except DamagedError:
            del records[before:]
            raise
        except IndexError:
            del records[before:]
            raise DamagedError("the batch ends within a record") from None
        return len(records) - before

    def _verify_skipped(self) -> None:
        """Verify the checksum of the batch that was skipped without it.

        The next batch does not follow directly: either the log has a gap, or the
        skipped batch's header contains wrong offsets.
        """
        skipped, self._skipped = self._skipped, None
        if skipped is None:
            return
        try:
            self._verify_checksum(skipped)
        except DamagedError as error:
            self._account.settled = skipped.base_offset
            self._account.add_damaged(
                skipped.base_offset, skipped.last_offset, str(error)
            )
