"""Finds the batches of aborted transactions (KIP-932, "Isolation level").

A consumer that reads committed records gets the aborted ones too, with a list of the
transactions, and skips them itself; for a share group the broker skips them.
"""

from collections.abc import Sequence
from typing import Final

from sharecons.testing.broker.log.batches import HEADER
from sharecons.testing.broker.log.partition_log import PartitionLog, StoredBatch

__all__ = ["aborted_ranges"]

ABORT: Final = b"\0\0"
TYPE_OFFSET: Final = HEADER.size + 7
"""The position of a marker's type: after five one-byte varints and a version."""


def aborted_ranges(
    log: PartitionLog, batches: Sequence[StoredBatch]
) -> list[tuple[int, int]]:
    """Return the first and last offset of each aborted batch, in order."""
    if not batches:
        return []
    end = batches[-1].last_offset + 1
    starting = sorted(
        log.aborted(batches[0].base_offset, end), key=lambda each: each[1]
    )
    open_producers: set[int] = set()
    ranges = []
    for batch in batches:
        while starting and starting[0][1] <= batch.last_offset:
            open_producers.add(starting.pop(0)[0])
        if batch.is_control and _is_abort(batch):
            open_producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_producers:
            ranges.append((batch.base_offset, batch.last_offset))
    return ranges


def _is_abort(batch: StoredBatch) -> bool:
    return batch.data[TYPE_OFFSET : TYPE_OFFSET + 2] == ABORT
