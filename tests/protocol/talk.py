"""A conversation with a leader's machine, for its tests."""

from dataclasses import fields
from typing import Final

from sharecons.errors import ConnectionFailedError
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.fetch.events import Acquired
from sharecons.protocol.fetch.leader import Answer, Leader, Request
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.messages import (
    FetchedPartition,
    ShareAcknowledge,
    ShareFetch,
    SharePartition,
)
from tests.protocol.making import NODE, P0, SETTINGS, TOPIC, TOPIC_ID, fetched

__all__ = ["LOST", "Talk"]

LOST: Final = ConnectionFailedError("the broker closed the connection")


class Talk:
    """A leader machine, the application's waiting, and the clock."""

    def __init__(self, *wanted: SharePartition, **settings: object) -> None:
        self.now = 0.0
        self.pace = Prefetch(500)
        self.pace.waiting = 1
        self.journal = ResultLog(lambda: None, lambda: 0.0)
        self.acknowledgements = AckBatcher(lambda: None, self.journal)
        known = {
            field.name: getattr(SETTINGS, field.name) for field in fields(SETTINGS)
        }
        changed = {**known, **settings}
        self.leader = Leader(
            NODE, type(SETTINGS)(**changed), self.pace, self.acknowledgements
        )
        self.leader.topics = {TOPIC_ID: TOPIC}
        self.leader.set_partitions(frozenset(wanted or {P0}))

    def next(self) -> Request | None:
        """The request that is due now; the contract's two questions agree."""
        due = self.leader.next_deadline(self.now)
        request = self.leader.next_request(self.now)
        assert request is None or due <= self.now
        if request is None and not self.leader.finished:
            assert self.leader.next_deadline(self.now) > self.now
        return request

    def fetch(self) -> ShareFetch:
        request = self.next()
        assert isinstance(request, ShareFetch)
        return request

    def acknowledge(self) -> ShareAcknowledge:
        request = self.next()
        assert isinstance(request, ShareAcknowledge)
        return request

    def answer(self, request: Request, answer: Answer) -> None:
        self.leader.answered(request, answer, self.now)

    def lose(self, request: Request) -> None:
        self.leader.failed(request, LOST, self.now)

    def open(self, *partitions: FetchedPartition) -> list[Lease]:
        """Open the session, with what the first fetch brings; nobody waits then."""
        self.answer(self.fetch(), fetched(*partitions))
        self.pace.waiting = 0
        return self.leases()

    def open_more(self, *partitions: FetchedPartition) -> list[Lease]:
        self.pace.waiting = 1
        return self.open(*partitions)

    def leases(self) -> list[Lease]:
        """Unpack what came: a record at each offset."""
        leases = [h.lease for h in self.happened(Acquired)]
        for lease in leases:
            first, last, _ = lease.acquired[0]
            lease.unpacked(range(first, last + 1))
            self.pace.handed_out(lease.count, self.now)
        return leases

    def happened(self, kind: type) -> list:
        these = [h for h in self.leader.events if isinstance(h, kind)]
        self.leader.events = [h for h in self.leader.events if h not in these]
        return these

    def flush(self) -> ShareAcknowledge:
        """The acknowledgement request that follows marks, after its delay."""
        assert self.next() is None
        self.now = self.leader.next_deadline(self.now)
        return self.acknowledge()

    @property
    def errors(self) -> list[str | None]:
        return [r.error and r.error.name for r in self.journal.results]
