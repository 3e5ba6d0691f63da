"""A piece of a partition's log, as whoever reads it by offset gets it.

Rule 1: these are plain values; records in them belong to nobody and lock nothing.
Rule 2: nothing here knows how it was read.
"""

from dataclasses import dataclass

from sharecons._record import Record

__all__ = ["LogSlice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """Records that follow each other in a log.

    Attributes:
        records: ascending; an offset that is left out has no record.
        next_offset: where to read on. Not moved on if one batch is larger than what
            was asked for.
        end_offset: the next offset to be written; the high watermark.
        log_start_offset: the first offset that retention left.
        damaged: what is wrong with offsets that cannot be read, if any.
    """

    records: tuple[Record, ...]
    next_offset: int
    end_offset: int
    log_start_offset: int
    damaged: tuple[str, ...] = ()
