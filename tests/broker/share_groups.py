"""A share partition with a log and settings, for tests without requests."""

from sharecons.testing.broker.share.acquire import AcquireRequest
from sharecons.testing.broker.share.coordinator_state import CoordinatorState
from sharecons.testing.broker.share.deliveries import (
    AcknowledgementBatch,
    GroupSettings,
)
from sharecons.testing.broker.share.partition import SharePartition
from tests.broker.offset_log import Log

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4


class Group:
    """A share partition, its log and its group's settings."""

    def __init__(self, *sizes, start=0, log_start=0, **settings):
        self.settings = GroupSettings(**settings)
        self.log = Log(log_start)
        self.log.append(*sizes)
        self.state = CoordinatorState()
        self.partition = SharePartition(self.state, start)

    def fetch(
        self, member="ann", max_records=500, now=0.0, aborted=(), offset=None, **limits
    ):
        if not self.partition.can_acquire(self.settings):
            return []
        offset = self.partition.next_fetch_offset() if offset is None else offset
        return [
            tuple(part)
            for part in self.partition.acquire(
                AcquireRequest(member=member, max_records=max_records, **limits),
                offset,
                self.log.read(offset),
                self.settings,
                now,
                aborted,
            )
        ]

    def acknowledge(self, *batches, member="ann", now=0.0):
        acknowledgements = [
            AcknowledgementBatch(first, last, tuple(t)) for first, last, *t in batches
        ]
        changes = self.partition.acknowledge(
            member, acknowledgements, self.settings, now
        )
        return self.partition.apply(changes)

    def release(self, member="ann"):
        return self.partition.release(member, self.settings)

    def advance(self, now):
        return self.partition.advance(self.settings, now)

    def move_leader(self):
        start = self.state.start_offset
        self.partition = SharePartition(self.state, max(start, 0))

    @property
    def written(self):
        return [tuple(batch) for batch in self.state.batches]
