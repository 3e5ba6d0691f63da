"""A harness for tests of a leader's state machine."""

from dataclasses import fields
from typing import Any, Final

from sharecons.errors import ConnectionFailedError
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.fetch.events import Acquired, StartsFixed
from sharecons.protocol.fetch.fetch_pauses import FetchPauses
from sharecons.protocol.fetch.leader import Leader, Request, Response
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import (
    PartitionResponse,
    ShareAcknowledge,
    ShareFetch,
)
from tests.protocol.message_factories import (
    NODE_ID,
    P0,
    SETTINGS,
    TOPIC,
    TOPIC_ID,
    acknowledge_response,
    fetch_response,
)

__all__ = ["CONNECTION_LOST", "LeaderHarness"]

CONNECTION_LOST: Final = ConnectionFailedError("the broker closed the connection")


class LeaderHarness:
    """A leader with its prefetch, batcher and result log, and a clock."""

    def __init__(
        self,
        *partitions: SharePartition,
        pauses: FetchPauses | None = None,
        **settings: object,
    ) -> None:
        self.now = 0.0
        self.prefetch = Prefetch(500)
        self.prefetch.waiting_readers = 1
        self.result_log = ResultLog(lambda: None, lambda: self.now)
        self.batcher = AckBatcher(lambda: None, self.result_log)
        known = {
            field.name: getattr(SETTINGS, field.name) for field in fields(SETTINGS)
        }
        changed = {**known, **settings}
        self.leader = Leader(
            NODE_ID, type(SETTINGS)(**changed), self.prefetch, self.batcher, pauses
        )
        self.leader.topic_names = {TOPIC_ID: TOPIC}
        self.leader.set_partitions(frozenset(partitions or {P0}))
        self.starts_fixed = 0
        # The partitions of the session at the broker, from the fetches so far.
        self.session_partitions: frozenset[SharePartition] = frozenset()

    def next_request(self) -> Request | None:
        """Return the request that is due now, after a check of `next_deadline`."""
        due = self.leader.next_deadline(self.now)
        request = self.leader.next_request(self.now)
        assert request is None or due <= self.now
        if request is None and not self.leader.finished:
            assert self.leader.next_deadline(self.now) > self.now
        return request

    def next_fetch(self) -> ShareFetch:
        request = self.next_request()
        assert isinstance(request, ShareFetch)
        return request

    def next_acknowledge(self) -> ShareAcknowledge:
        request = self.next_request()
        assert isinstance(request, ShareAcknowledge)
        return request

    def respond(self, request: Request, response: Response) -> None:
        if isinstance(request, ShareFetch) and not response.error:
            if request.share_session_epoch == 0:
                self.session_partitions = frozenset()
            listed = request.added | request.acknowledgements.keys()
            self.session_partitions |= listed
            self.session_partitions -= request.forgotten
        self.leader.on_response(request, response, self.now)
        self.starts_fixed += len(self.take_events(StartsFixed))

    def fetch(self, *partitions: PartitionResponse, **response: Any) -> ShareFetch:
        """Exchange the fetch that is due, and return it."""
        request = self.next_fetch()
        self.respond(request, fetch_response(*partitions, **response))
        return request

    def acknowledge(
        self, *partitions: PartitionResponse, **response: Any
    ) -> ShareAcknowledge:
        """Exchange the acknowledgement request that is due, and return it."""
        request = self.next_acknowledge()
        self.respond(request, acknowledge_response(*partitions, **response))
        return request

    def acknowledge_later(
        self, *partitions: PartitionResponse, **response: Any
    ) -> ShareAcknowledge:
        """Exchange the acknowledgement request that is due after the linger time."""
        request = self.flush_acks()
        self.respond(request, acknowledge_response(*partitions, **response))
        return request

    def fail(self, request: Request) -> None:
        self.leader.on_error(request, CONNECTION_LOST, self.now)

    def open_session(self, *partitions: PartitionResponse) -> list[Lease]:
        """Open the session with the first fetch; then no reader is waiting."""
        self.fetch(*partitions)
        self.prefetch.waiting_readers = 0
        return self.take_leases()

    def fetch_more(self, *partitions: PartitionResponse) -> list[Lease]:
        self.prefetch.waiting_readers = 1
        return self.open_session(*partitions)

    def take_leases(self) -> list[Lease]:
        """Take the acquired leases, with a record at each offset."""
        leases = [event.lease for event in self.take_events(Acquired)]
        for lease in leases:
            first, last, _ = lease.acquired[0]
            lease.set_offsets(range(first, last + 1))
            self.prefetch.on_delivered(lease.count, self.now)
        return leases

    def take_events(self, kind: type) -> list:
        """Remove the events of this type from the leader, and return them."""
        taken = [event for event in self.leader.events if isinstance(event, kind)]
        events = self.leader.events
        self.leader.events = [e for e in events if not isinstance(e, kind)]
        return taken

    def flush_acks(self) -> ShareAcknowledge:
        """Return the acknowledgement request that is due after the linger time."""
        assert self.next_request() is None
        self.now = self.leader.next_deadline(self.now)
        return self.next_acknowledge()

    @property
    def errors(self) -> list[str | None]:
        """The error name of each acknowledgement's result; None for a success."""
        return [r.error and r.error.name for r in self.result_log.results]
