"""The records of one partition out of a ShareFetch answer (KIP-932, "ShareFetch").

Such an answer has two parts that know nothing of each other. One is a piece of the
log: whole record batches (`layout` tells their form), the last one perhaps cut off.
The other says which offsets this consumer acquired, and how often each has been
delivered. A batch may hold many acquired ranges, records that somebody else has
acquired, holes that compaction left, or markers of transactions.

`decode` brings them together. It finds the batches; leaves alone those that hold no
acquired offset; checks, decompresses and reads the others (`body`); and accounts for
every acquired offset (`account`).

A batch is used as a whole or not at all, and whatever is wrong with it, the next one
is read. No bytes make it raise.
"""

from collections.abc import Sequence
from typing import final

from crc32c import crc32c

from sharecons._record import AckTarget, Record
from sharecons.records.compression import decompress
from sharecons.records.errors import DamagedError
from sharecons.records.layout import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    MAGIC,
    PREFIX_SIZE,
    SMALLEST_LENGTH,
    Header,
)
from sharecons.records.offset_accounting import Account, Decoded, Undecodable
from sharecons.records.record_decoder import BEYOND, LAST_OFFSET, Span, read_records

__all__ = ["Decoded", "Undecodable", "decode"]


def decode(
    payload: bytes | memoryview,
    acquired: Sequence[tuple[int, int, int]],
    topic: str,
    partition: int,
    holder: AckTarget,
) -> Decoded:
    """Decode what was acquired; every acquired offset is in one part of the result.

    Args:
        payload: the Records field of the partition's answer; empty for null. The
            records keep nothing of it.
        acquired: first offset, last offset and delivery count of each acquired range,
            ascending, none overlapping another.
        holder: passed on to the records.
    """
    if len(acquired) == 1:
        records = _read_whole(payload, acquired[0], topic, partition, holder)
        if records is not None:
            return Decoded(records)
    return _Reader(payload, acquired, topic, partition, holder).read()


def _read_whole(
    payload: bytes | memoryview,
    span: Span,
    topic: str,
    partition: int,
    holder: AckTarget,
) -> list[Record] | None:
    """Read what is one batch, acquired as a whole, as records are that come alone.

    There is nothing to account for then. None if it is not so, or anything is amiss.
    """
    size = len(payload)
    if size < HEADER_SIZE:
        return None
    header = Header(payload, 0)
    first, last, _ = span
    if not (
        header.end == size
        and header.magic == MAGIC
        and header.base_offset == first
        and header.last_offset == last
        and header.count == last - first + 1
        and not header.attributes & CONTROL
    ):
        return None
    summed = payload[CRC_START:]
    if crc32c(summed) != header.crc:
        return None
    records: list[Record] = []
    spans = [span, BEYOND]
    try:
        _read_records(header, summed, spans, topic, partition, holder, records)
    except (DamagedError, IndexError):
        return None
    return records if len(records) == header.count else None


def _read_records(
    header: Header,
    summed: bytes | memoryview,
    spans: list[Span],
    topic: str,
    partition: int,
    holder: AckTarget,
    records: list[Record],
) -> None:
    """Unfold a batch, of which this was summed, and read it; raises as `body` does."""
    # A copy of one batch is small, and just summed: it costs little, and slices of
    # bytes are the cheapest that there are.
    data = summed if isinstance(summed, bytes) else summed.tobytes()
    start = HEADER_SIZE - CRC_START
    codec = header.attributes & CODEC_MASK
    if codec:
        data = decompress(codec, data[start:])
        start = 0
    read_records(header, data, start, spans, topic, partition, holder, records)


@final
class _Reader:
    __slots__ = (
        "_account",
        "_holder",
        "_partition",
        "_payload",
        "_skipped",
        "_topic",
    )

    def __init__(
        self,
        payload: bytes | memoryview,
        acquired: Sequence[Span],
        topic: str,
        partition: int,
        holder: AckTarget,
    ) -> None:
        self._payload = memoryview(payload)
        self._topic = topic
        self._partition = partition
        self._holder = holder
        self._account = Account(acquired)
        # The batch before, if it was stepped over without a look at its checksum.
        self._skipped: Header | None = None

    def read(self) -> Decoded:
        payload = self._payload
        account = self._account
        size = len(payload)
        position = 0
        while size - position >= PREFIX_SIZE:
            header = Header(payload, position)
            if header.length < SMALLEST_LENGTH:
                account.lost(f"no batch is {header.length} bytes long")
                break
            if header.end > size:
                break
            if header.base_offset != account.settled:
                self._vouch_for_skipped()
            if header.magic != MAGIC:
                reason = f"a record batch of unknown format {header.magic}"
                account.damaged(header.base_offset, header.base_offset, reason)
            elif header.end - position < HEADER_SIZE:
                reason = "a batch too short for its header"
                account.damaged(header.base_offset, header.base_offset, reason)
            else:
                self._read_batch(header)
            position = header.end
        return account.finish()

    def _read_batch(self, header: Header) -> None:
        account = self._account
        first, last = header.base_offset, header.last_offset
        try:
            self._check_header(header)
            # A hole before the batch is looked at too: it is one only if this header
            # is right.
            if not account.is_wanted(last):
                account.settled = last + 1
                self._skipped = header
                return
            self._skipped = None
            summed = self._check_sum(header)
            spans = account.spans(first, last)
            account.good(header, spans, self._read_records(header, summed, spans))
        except DamagedError as error:
            account.damaged(first, last, str(error))

    def _check_header(self, header: Header) -> None:
        if header.base_offset < self._account.settled:
            raise DamagedError("a batch that overlaps one before it")
        if not header.base_offset <= header.last_offset <= LAST_OFFSET:
            raise DamagedError("a batch whose offsets make no sense")
        if header.count < 0:
            raise DamagedError("a negative number of records")

    def _check_sum(self, header: Header) -> memoryview:
        """See that a batch is as it was produced; gives what was summed."""
        summed = self._payload[header.position + CRC_START : header.end]
        if crc32c(summed) != header.crc:
            raise DamagedError("the checksum is wrong")
        return summed

    def _read_records(
        self, header: Header, summed: memoryview, spans: list[Span]
    ) -> int:
        """Read the records inside the spans; gives how many there are."""
        # What marks the end of a transaction is no record to anybody.
        if len(spans) == 1 or header.attributes & CONTROL:
            return 0
        records = self._account.decoded.records
        before = len(records)
        try:
            _read_records(
                header,
                summed,
                spans,
                self._topic,
                self._partition,
                self._holder,
                records,
            )
        except DamagedError:
            del records[before:]
            raise
        except IndexError:
            del records[before:]
            raise DamagedError("the bytes end within a record") from None
        return len(records) - before

    def _vouch_for_skipped(self) -> None:
        """Look at a skipped batch after all, as something beside it is amiss.

        Where the next batch does not follow, either the log has a hole or the skipped
        batch's header was wrong about its offsets.
        """
        skipped, self._skipped = self._skipped, None
        if skipped is None:
            return
        try:
            self._check_sum(skipped)
        except DamagedError as error:
            self._account.settled = skipped.base_offset
            self._account.damaged(skipped.base_offset, skipped.last_offset, str(error))
