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

from sharecons.records.account import Account, Decoded, Undecodable
from sharecons.records.body import LAST_OFFSET, Span, read_records
from sharecons.records.compression import decompress
from sharecons.records.damage import DamagedError
from sharecons.records.layout import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    PREFIX,
    PREFIX_SIZE,
    SMALLEST_LENGTH,
    Header,
)
from sharecons.untyped import Holder, Record

__all__ = ["Decoded", "Undecodable", "decode"]


def decode(
    payload: bytes,
    acquired: Sequence[tuple[int, int, int]],
    topic: str,
    partition: int,
    holder: Holder,
) -> Decoded:
    """Decode what was acquired; every acquired offset is in one part of the result.

    Args:
        payload: the Records field of the partition's answer; empty for null.
        acquired: first offset, last offset and delivery count of each acquired range,
            ascending, none overlapping another.
        holder: passed on to the records.
    """
    return _Reader(payload, acquired, topic, partition, holder).read()


@final
class _Reader:
    __slots__ = (
        "_account",
        "_holder",
        "_partition",
        "_payload",
        "_skipped",
        "_topic",
        "_view",
    )

    def __init__(
        self,
        payload: bytes,
        acquired: Sequence[Span],
        topic: str,
        partition: int,
        holder: Holder,
    ) -> None:
        self._payload = payload
        self._view = memoryview(payload)
        self._topic = topic
        self._partition = partition
        self._holder = holder
        self._account = Account(acquired)
        # The batch before, if it was stepped over without a look at its checksum.
        self._skipped: Header | None = None

    def read(self) -> Decoded:
        payload = self._payload
        position = 0
        base_offset: int
        length: int
        magic: int
        while len(payload) - position >= PREFIX_SIZE:
            base_offset, length, magic = PREFIX.unpack_from(payload, position)
            if length < SMALLEST_LENGTH:
                self._account.lost(f"no batch is {length} bytes long")
                break
            end = position + LENGTH_END + length
            if end > len(payload):
                break
            if base_offset != self._account.settled:
                self._vouch_for_skipped()
            if magic != MAGIC:
                reason = f"a record batch of unknown format {magic}"
                self._account.damaged(base_offset, base_offset, reason)
            elif end - position < HEADER_SIZE:
                reason = "a batch too short for its header"
                self._account.damaged(base_offset, base_offset, reason)
            else:
                self._read_batch(Header(payload, position, end))
            position = end
        return self._account.finish()

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
            self._check_sum(header)
            spans = account.spans(first, last)
            account.good(header, spans, self._read_records(header, spans))
        except DamagedError as error:
            account.damaged(first, last, str(error))

    def _check_header(self, header: Header) -> None:
        if header.base_offset < self._account.settled:
            raise DamagedError("a batch that overlaps one before it")
        if not header.base_offset <= header.last_offset <= LAST_OFFSET:
            raise DamagedError("a batch whose offsets make no sense")
        if header.count < 0:
            raise DamagedError("a negative number of records")

    def _check_sum(self, header: Header) -> None:
        summed = self._view[header.position + CRC_START : header.end]
        if crc32c(summed) != header.crc:
            raise DamagedError("the checksum is wrong")

    def _read_records(self, header: Header, spans: list[Span]) -> list[Record]:
        # What marks the end of a transaction is no record to anybody.
        if len(spans) == 1 or header.attributes & CONTROL:
            return []
        data = self._payload
        start, stop = header.position + HEADER_SIZE, header.end
        codec = header.attributes & CODEC_MASK
        if codec:
            data = decompress(codec, data[start:stop])
            start, stop = 0, len(data)
        try:
            return read_records(
                header,
                data,
                start,
                stop,
                spans,
                self._topic,
                self._partition,
                self._holder,
            )
        except IndexError:
            raise DamagedError("the bytes end within a record") from None

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
