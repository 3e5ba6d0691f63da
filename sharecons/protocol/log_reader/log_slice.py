"""A slice of a partition's log, read by offset.

Rule 1: plain values; the records are not acquired and hold no locks.
Rule 2: independent of how it was read.
"""

from dataclasses import dataclass

from sharecons._record import Record

__all__ = ["LogSlice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """Consecutive records of a log.

    Attributes:
        records: in order; an offset without a record here has none in the log.
        next_offset: where to continue. Unchanged if the next batch is larger than the
            requested bytes.
        end_offset: the next offset to be written; the high watermark.
        log_start_offset: the first offset that retention has kept.
        damaged: messages about offsets that cannot be decoded.
    """

    records: tuple[Record, ...]
    next_offset: int
    end_offset: int
    log_start_offset: int
    damaged: tuple[str, ...] = ()
