"""The batches of aborted transactions in a part of a log."""

from collections.abc import Sequence
from struct import Struct
from typing import Final, final

from sharecons.records.batch_header import (
    CONTROL,
    HEADER_SIZE,
    MAGIC,
    PREFIX_SIZE,
    SMALLEST_LENGTH,
    TRANSACTIONAL,
    Header,
)

__all__ = ["AbortedTransactions", "aborted_ranges"]

_PRODUCER_ID: Final = Struct(">q")
_PRODUCER_ID_AT: Final = 43


@final
class AbortedTransactions:
    """Finds the batches to skip, in the order of the log.

    Args:
        aborted: producer id and first offset of each aborted transaction, as in a
            response to a Fetch of committed records.
    """

    __slots__ = ("_aborted", "_producers")

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._aborted = sorted((first, producer) for producer, first in aborted)
        self._producers: set[int] = set()

    def has(self, header: Header, payload: memoryview) -> bool:
        """Return True for a marker, and for a batch of an aborted transaction.

        Must be called for each batch, since markers end transactions.
        """
        if not header.attributes & (CONTROL | TRANSACTIONAL):
            return False
        control = header.attributes & CONTROL != 0
        if not self._aborted and not self._producers:
            return control
        while self._aborted and self._aborted[0][0] <= header.last_offset:
            self._producers.add(self._aborted.pop(0)[1])
        producer: int = _PRODUCER_ID.unpack_from(
            payload, header.position + _PRODUCER_ID_AT
        )[0]
        if control:
            # Any marker ends the transaction, so its type does not matter.
            self._producers.discard(producer)
            return True
        return producer in self._producers


def aborted_ranges(
    payload: memoryview, aborted: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the first and last offset of each batch of an aborted transaction."""
    found: list[tuple[int, int]] = []
    transactions = AbortedTransactions(aborted)
    position, size = 0, len(payload)
    while aborted and size - position >= PREFIX_SIZE:
        header = Header(payload, position)
        if header.length < SMALLEST_LENGTH or header.end > size:
            break
        is_batch = header.magic == MAGIC and header.end - position >= HEADER_SIZE
        if is_batch and transactions.has(header, payload):
            found.append((header.base_offset, header.last_offset))
        position = header.end
    return found
