"""The log of one partition: batches as producers wrote them, with offsets given."""

from sharecons.testing.broker.signals import Signal

__all__ = ["PartitionLog"]


class PartitionLog:
    """A log, and how far it may be read.

    Offsets: `start_offset` is the first that is still there; `end_offset` the next to
    be given (which is the high watermark: a batch is replicated once it is appended);
    `last_stable_offset` the first that belongs to a transaction under way, or the end.
    """

    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.last_stable_offset = 0
        self.grown = Signal()
        """Told when any of the three has changed."""
