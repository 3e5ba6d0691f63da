"""A log that only has offsets."""

from typing import NamedTuple


class Batch(NamedTuple):
    base_offset: int
    last_offset: int


class Log:
    def __init__(self, start=0):
        self.start = self.end = start
        self.batches = []

    def append(self, *sizes):
        for size in sizes:
            self.batches.append(Batch(self.end, self.end + size - 1))
            self.end += size

    def read(self, offset, max_batches=1000):
        """Return whole batches, beginning with the offset's batch."""
        batches = [batch for batch in self.batches if batch.last_offset >= offset]
        return batches[:max_batches]
