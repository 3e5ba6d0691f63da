"""Decodes one partition's part of a Fetch response into columns, in several steps.

A damaged batch ends the read with an error that names its offset: a replay must not
omit records silently.
"""

from collections.abc import Sequence
from typing import Final, final

from crc32c import crc32c

from sharecons.records.batch_header import (
    CODEC_MASK,
    CRC_START,
    HEADER_SIZE,
    MAGIC,
    PREFIX_SIZE,
    SMALLEST_LENGTH,
    Header,
)
from sharecons.records.columns import (
    END_OF_SPANS,
    LAST_OFFSET,
    Columns,
    Span,
    read_batch,
)
from sharecons.records.compression import decompress
from sharecons.records.errors import DamagedError
from sharecons.records.message_sets import LAST_MAGIC, to_batch
from sharecons.records.transactions import AbortedTransactions

__all__ = ["ColumnsReader", "next_offset"]

MAX_DATA: Final = 32 << 20


def next_offset(payload: memoryview, offset: int) -> int:
    """Return the next offset to fetch: the one after the last complete batch.

    This reads only headers, so the next fetch need not wait for the decoder. Return
    `offset` if there is no complete batch.
    """
    position = 0
    size = len(payload)
    while size - position >= PREFIX_SIZE:
        header = Header(payload, position)
        if header.length < SMALLEST_LENGTH or header.end > size:
            break
        if header.magic == MAGIC:
            offset = max(offset, header.last_offset + 1)
        elif header.magic <= LAST_MAGIC:
            # The offset of a message is its last one.
            offset = max(offset, header.base_offset + 1)
        position = header.end
    return offset


@final
class ColumnsReader:
    """A reader of one partition's part of a Fetch response, one `Columns` at a time.

    Args:
        payload: batches, of which the last can be truncated.
        spans: the requested offsets, ascending and disjoint. Spans before the payload
            are skipped.
        aborted: producer id and first offset of each aborted transaction, whose
            records are then skipped.
        with_headers: whether to decode the records' headers.
        max_data: bytes of decompressed data after which `read` returns.
    """

    __slots__ = (
        "_aborted",
        "_ended",
        "_index",
        "_payload",
        "_position",
        "_spans",
        "_view",
        "_with_headers",
        "max_data",
    )

    def __init__(
        self,
        payload: memoryview,
        spans: Sequence[Span],
        *,
        aborted: Sequence[tuple[int, int]] = (),
        with_headers: bool = False,
        max_data: int = MAX_DATA,
    ) -> None:
        # Indexing and slicing bytes is faster than for any other type.
        self._payload = payload.tobytes()
        self._view = memoryview(self._payload)
        self._position = 0
        self._ended = False
        self._spans = spans
        self._index = 0
        self._aborted = AbortedTransactions(aborted)
        self._with_headers = with_headers
        self.max_data = max_data

    def read(self) -> Columns | None:
        """Return the next columns, or None at the end.

        Raises:
            DamagedError: a batch is damaged; the reader cannot continue.
        """
        while not self._ended:
            columns = Columns()
            self._fill(columns)
            if columns.rows:
                return columns
        return None

    def _fill(self, columns: Columns) -> None:
        decompressed: list[bytes] = []
        size = 0  # of all decompressed data
        while size < self.max_data:
            header = self._next_header()
            if header is None:
                self._ended = True
                break
            end = header.end
            batch = b""  # converted from an older format
            if header.magic != MAGIC:
                if self._is_before_spans(header.base_offset):
                    self._position = end
                    continue
                batch = self._convert(header)
                header = Header(batch, 0)
            spans = self._overlapping_spans(header)
            # `has` must see every marker, even where nothing is requested.
            if self._aborted.has(header, self._view) or len(spans) == 1:
                self._position = end
                continue
            is_copy = batch != b"" or header.attributes & CODEC_MASK != 0
            # All positions refer to one buffer: the response or the decompressed data.
            if columns.rows and is_copy != bool(decompressed):
                break
            if is_copy:
                body = batch[HEADER_SIZE:] if batch else self._decompress(header)
                self._read(header, body, 0, len(body), size, spans, columns)
                decompressed.append(body)
                size += len(body)
            else:
                self._verify_checksum(header)
                start = header.position + HEADER_SIZE
                decompressed, size = [], 0
                self._read(header, self._payload, start, end, 0, spans, columns)
            self._position = end
        columns.data = b"".join(decompressed) if decompressed else self._payload

    def _next_header(self) -> Header | None:
        """Return the header of the next batch, or None if there is no complete one."""
        if len(self._payload) - self._position < PREFIX_SIZE:
            return None
        header = Header(self._view, self._position)
        if header.length < SMALLEST_LENGTH:
            raise DamagedError(f"invalid batch length {header.length}")
        if header.end > len(self._payload):
            return None
        if header.magic <= LAST_MAGIC:
            return header
        if header.magic != MAGIC:
            raise DamagedError(f"unknown record batch format {header.magic}")
        if header.end - header.position < HEADER_SIZE:
            raise DamagedError("the batch is shorter than its header")
        if not header.base_offset <= header.last_offset < LAST_OFFSET:
            raise DamagedError("the batch has invalid offsets")
        return header

    def _convert(self, header: Header) -> bytes:
        """Return a message of format 0 or 1 as a batch of format 2."""
        try:
            return to_batch(self._payload[header.position : header.end])
        except DamagedError as error:
            raise DamagedError(
                f"the message at offset {header.base_offset}: {error}"
            ) from None

    def _decompress(self, header: Header) -> bytes:
        self._verify_checksum(header)
        start = header.position + HEADER_SIZE
        return decompress(
            header.attributes & CODEC_MASK, self._payload[start : header.end]
        )

    def _is_before_spans(self, offset: int) -> bool:
        return self._index < len(self._spans) and offset < self._spans[self._index][0]

    def _overlapping_spans(self, header: Header) -> list[Span]:
        """Return the spans that overlap a batch, then `END_OF_SPANS`."""
        wanted = self._spans
        while self._index < len(wanted) and wanted[self._index][1] < header.base_offset:
            self._index += 1
        index = self._index
        spans: list[Span] = []
        while index < len(wanted) and wanted[index][0] <= header.last_offset:
            spans.append(wanted[index])
            index += 1
        spans.append(END_OF_SPANS)
        return spans

    def _verify_checksum(self, header: Header) -> None:
        checked = self._view[header.position + CRC_START : header.end]
        checksum: int = crc32c(checked)  # built without the library's types
        if checksum != header.crc:
            raise DamagedError(
                f"the batch at offset {header.base_offset}: the checksum does not match"
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
            raise DamagedError("the batch ends within a record") from None
        except DamagedError as error:
            raise DamagedError(
                f"the batch at offset {header.base_offset}: {error}"
            ) from None
