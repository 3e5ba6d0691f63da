"""A partition's part of a Fetch answer to columns, some batches at a time.

Here the checksum decides for a whole answer: a batch that is damaged ends the read with
an error that says where, since nothing may be left out of a replay in silence.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, final

from crc32c import crc32c

from sharecons.records.columns import BEYOND, LAST_OFFSET, Columns, Span, read_batch
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
    TRANSACTIONAL,
    Header,
)

__all__ = ["ColumnsReader", "next_offset"]

MOST_DATA: Final = 32 << 20

_PRODUCER_ID: Final = Struct(">q")
_PRODUCER_ID_AT: Final = 43


def next_offset(payload: memoryview, offset: int) -> int:
    """Say where to fetch on after an answer: behind its last whole batch.

    Looks at nothing but headers, so that the next fetch need not wait for the decoder;
    gives `offset` itself if there is no whole batch.
    """
    position = 0
    size = len(payload)
    while size - position >= PREFIX_SIZE:
        header = Header(payload, position)
        if header.length < SMALLEST_LENGTH or header.end > size:
            break
        if header.magic == MAGIC:
            offset = max(offset, header.last_offset + 1)
        position = header.end
    return offset


@final
class ColumnsReader:
    """Reads one partition's part of a Fetch answer, some `Columns` at a time.

    Args:
        payload: whole batches, the last perhaps cut off.
        spans: what is wanted, ascending, none overlapping another; read from the
            first that an offset of the payload lies in.
        aborted: producer id and first offset of each aborted transaction, if those
            are to be left out.
        most: bytes of unfolded data after which `read` gives what it has.
    """

    __slots__ = (
        "_aborted",
        "_aborting",
        "_ended",
        "_index",
        "_payload",
        "_position",
        "_spans",
        "_view",
        "_with_headers",
        "most",
    )

    def __init__(
        self,
        payload: memoryview,
        spans: Sequence[Span],
        *,
        aborted: Sequence[tuple[int, int]] = (),
        with_headers: bool = False,
        most: int = MOST_DATA,
    ) -> None:
        # Slices of bytes and their indices are the cheapest that there are.
        self._payload = payload.tobytes()
        self._view = memoryview(self._payload)
        self._position = 0
        self._ended = False
        self._spans = spans
        self._index = 0
        self._aborted = sorted((first, producer) for producer, first in aborted)
        self._aborting: set[int] = set()
        self._with_headers = with_headers
        self.most = most

    def read(self) -> Columns | None:
        """Read on; None if nothing is left.

        Raises:
            DamagedError: a batch is damaged; nothing more can be read.
        """
        while not self._ended:
            columns = Columns()
            self._fill(columns)
            if columns.rows:
                return columns
        return None

    def _fill(self, columns: Columns) -> None:
        unfolded: list[bytes] = []
        size = 0  # of all that was unfolded
        while size < self.most:
            header = self._next_header()
            if header is None:
                self._ended = True
                break
            spans = self._spans_of(header)
            # Markers count where nothing is wanted, too.
            if self._is_to_skip(header) or len(spans) == 1:
                self._position = header.end
                continue
            codec = header.attributes & CODEC_MASK
            # Positions are of one buffer: the answer, or what was unfolded of it.
            if columns.rows and bool(codec) != bool(unfolded):
                break
            start = header.position + HEADER_SIZE
            self._check_sum(header)
            if codec:
                body = decompress(codec, self._payload[start : header.end])
                self._read(header, body, 0, len(body), size, spans, columns)
                unfolded.append(body)
                size += len(body)
            else:
                unfolded, size = [], 0
                self._read(header, self._payload, start, header.end, 0, spans, columns)
            self._position = header.end
        columns.data = b"".join(unfolded) if unfolded else self._payload

    def _next_header(self) -> Header | None:
        """Find the next batch, if it is whole."""
        if len(self._payload) - self._position < PREFIX_SIZE:
            return None
        header = Header(self._view, self._position)
        if header.length < SMALLEST_LENGTH:
            raise DamagedError(f"no batch is {header.length} bytes long")
        if header.end > len(self._payload):
            return None
        if header.magic != MAGIC:
            raise DamagedError(f"a record batch of unknown format {header.magic}")
        if header.end - header.position < HEADER_SIZE:
            raise DamagedError("a batch too short for its header")
        if not header.base_offset <= header.last_offset < LAST_OFFSET:
            raise DamagedError("a batch whose offsets make no sense")
        return header

    def _spans_of(self, header: Header) -> list[Span]:
        """Give the spans that overlap a batch, then `BEYOND`."""
        wanted = self._spans
        while self._index < len(wanted) and wanted[self._index][1] < header.base_offset:
            self._index += 1
        index = self._index
        spans: list[Span] = []
        while index < len(wanted) and wanted[index][0] <= header.last_offset:
            spans.append(wanted[index])
            index += 1
        spans.append(BEYOND)
        return spans

    def _is_to_skip(self, header: Header) -> bool:
        """Whether a batch marks a transaction's end, or belongs to an aborted one."""
        if not header.attributes & (CONTROL | TRANSACTIONAL):
            return False
        control = header.attributes & CONTROL != 0
        if not self._aborted and not self._aborting:
            return control
        while self._aborted and self._aborted[0][0] <= header.last_offset:
            self._aborting.add(self._aborted.pop(0)[1])
        producer: int = _PRODUCER_ID.unpack_from(
            self._view, header.position + _PRODUCER_ID_AT
        )[0]
        if control:
            # Whatever it says: an aborted transaction's first marker is its last.
            self._aborting.discard(producer)
            return True
        return producer in self._aborting

    def _check_sum(self, header: Header) -> None:
        if crc32c(self._view[header.position + CRC_START : header.end]) != header.crc:
            raise DamagedError(
                f"the checksum of the batch at offset {header.base_offset} is wrong"
            )

    def _read(
        self,
        header: Header,
        data: bytes,
        start: int,
        stop: int,
        base: int,
        spans: list[Span],
        columns: Columns,
    ) -> None:
        try:
            read_batch(
                header, data, start, stop, base, spans, self._with_headers, columns
            )
        except IndexError:
            raise DamagedError("the bytes end within a record") from None
        except DamagedError as error:
            raise DamagedError(
                f"the batch at offset {header.base_offset}: {error}"
            ) from None
