"""The contents of the next ShareFetch or ShareAcknowledge to one leader.

`leader` decides when a request is sent, `fetch_control` what a fetch requests. Every
request built here is sent: building it takes the next session epoch, and its
acknowledgements are in flight.
"""

from typing import final

from sharecons._record import RELEASE, RENEW
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.linger import AckLinger
from sharecons.protocol.fetch.fetch_control import FetchControl
from sharecons.protocol.fetch.session_manager import CLOSING, ShareSession
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.protocol.fetch.start_offsets import (
    MAX_WAIT,
    NO_RECORDS,
    UNREACHABLE_BYTES,
)
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import Range, ShareAcknowledge, ShareFetch

__all__ = ["RequestBuilder"]


@final
class RequestBuilder:
    """Builds the requests to one leader."""

    def __init__(
        self,
        settings: FetchSettings,
        session: ShareSession,
        batcher: AckBatcher,
        linger: AckLinger,
        control: FetchControl,
    ) -> None:
        self._settings = settings
        self._session = session
        self._batcher = batcher
        self._linger = linger
        self._control = control

    def build_acknowledge(
        self, now: float, *, closing: bool = False
    ) -> ShareAcknowledge:
        """Build a request with acknowledgements; close the session if none remain."""
        self._linger.end()
        acknowledged = self._batcher.take_ranges(now)
        epoch = self._session.next_epoch()
        if closing and not self._batcher.has_pending:
            epoch = CLOSING  # otherwise batches to send alone need more requests
            self._control.on_session_closed()
        return ShareAcknowledge(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=epoch,
            is_renew_ack=any(
                RENEW in r.kinds for ranges in acknowledged.values() for r in ranges
            ),
            acknowledgements=acknowledged,
        )

    def build_fetch(
        self,
        now: float,
        partitions: frozenset[SharePartition],
        leaders: int,
        *,
        backlog: bool = False,
        opening_only: bool = False,
    ) -> ShareFetch:
        """Build a fetch.

        Args:
            now: the current time.
            partitions: the partitions to fetch, if they are not paused.
            leaders: how many leaders share the prefetch allowance.
            backlog: more records are available. The fetch then carries acknowledgements
                that linger.
            opening_only: acquire nothing, only open a session for acknowledgements from
                the session before.
        """
        self._batcher.forget_expired(now)
        acknowledged = self._take_acknowledgements(now, backlog)
        # A record released by this fetch would not end its wait.
        released = any(
            RELEASE in r.kinds for ranges in acknowledged.values() for r in ranges
        )
        plan = self._control.plan(
            now,
            partitions,
            leaders,
            backlog=backlog,
            may_wait=not (opening_only or released),
            until_ack=self._linger.due - now,
        )
        added, forgotten = self._session.update(plan.partitions, acknowledged.keys())
        return ShareFetch(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=self._session.next_epoch(),
            max_wait=plan.max_wait,
            min_bytes=plan.min_bytes,
            # With 0 bytes the broker acquires nothing.
            max_bytes=0 if opening_only else plan.max_bytes,
            max_records=plan.max_records,
            record_limit=plan.record_limit,
            added=added,
            forgotten=forgotten,
            acknowledgements=acknowledged,
        )

    def build_start_fetch(self, pending: frozenset[SharePartition]) -> ShareFetch:
        """Build a fetch that fixes start offsets and acquires nothing.

        Args:
            pending: the partitions whose start offsets are not fixed. If the session
                has one of them, the fetch opens a new session, with the same locks.
        """
        partitions = self._session.partitions | pending
        if pending & self._session.partitions:
            self._session.reset()
        added, _ = self._session.update(partitions, frozenset())
        return ShareFetch(
            group_id=self._settings.group_id,
            member_id=self._settings.member_id,
            share_session_epoch=self._session.next_epoch(),
            max_wait=MAX_WAIT,
            min_bytes=0 if len(partitions) == 1 else UNREACHABLE_BYTES,
            max_bytes=self._settings.max_bytes,
            max_records=NO_RECORDS,
            record_limit=False,
            added=added,
            forgotten=frozenset(),
            acknowledgements={},
        )

    def _take_acknowledgements(
        self, now: float, backlog: bool
    ) -> dict[SharePartition, tuple[Range, ...]]:
        """Return the acknowledgements to send with this fetch."""
        if not self._session.is_open:
            return {}  # not allowed in the request that opens a session
        can_piggyback = self._linger.can_piggyback(now, self._control.fetch_interval)
        if not (backlog or can_piggyback or self._batcher.has_releases):
            return {}
        self._linger.end()
        return self._batcher.take_ranges(now)
