"""Fixing the start offsets of assigned partitions, before records are requested.

A broker decides where a new group starts in a partition when a member first fetches
from the partition, and not when it assigns the partition. If the group starts at the
end (`share.auto.offset.reset` is latest), it never receives records that were written
in between. So each assigned partition is fetched once, even if the application requests
no records.

This fetch acquires nothing, as its record limit is negative. With a limit of 0 records
or 0 bytes a broker does not load the partition's state, and a limit of 1 could acquire
a record that the application has not requested (measured on Kafka 4.3.0 and 4.4.0).

The response lists the partitions whose state is loaded. The others are fetched again in
a new session: in the same one, a broker would not list them without records.

A broker forgets the start that it has not stored when the last connection ends on which
a member of the group had a session. Until then it keeps it, even if the partition has
left the session, or the session is closed (measured on Kafka 4.4.0). So a connection
without other requests is kept open by further such fetches.
"""

import math
from typing import Final, final

from sharecons.protocol import error_actions
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.fetch.fetch_pauses import FetchPauses
from sharecons.protocol.fetch.session_manager import ShareSession
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import (
    PartitionResponse,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
)

__all__ = ["KEEP_ALIVE", "MAX_WAIT", "NO_RECORDS", "UNREACHABLE_BYTES", "StartOffsets"]

NO_RECORDS: Final = -1
"""The record limit of a fetch that acquires nothing."""

UNREACHABLE_BYTES: Final = 0x7FFFFFFF
"""The minimum bytes of a fetch for several partitions. With a small number, a broker
returns when it has loaded the first one."""

MAX_WAIT: Final = 0.05
"""Seconds that this fetch waits for brokers to load all partitions. Kafka 4.4.0 takes
10 to 20 ms for 30 partitions."""

KEEP_ALIVE: Final = 120.0
"""Seconds without a request after which a fetch for no records is sent. Brokers close
idle connections after ten minutes (`connections.max.idle.ms`), load balancers after
four."""

MAX_ATTEMPTS: Final = 10
"""The number of fetches, for about 6 seconds, after which partitions that are not
listed count as loaded: a partition without space for more locks is never listed."""


@final
class StartOffsets:
    """The partitions of one leader whose start offsets are fixed.

    Attributes:
        fixed: these partitions.
        pending: the other partitions of the leader.
    """

    def __init__(
        self, spread: float, pauses: FetchPauses, session: ShareSession
    ) -> None:
        self.fixed: frozenset[SharePartition] = frozenset()
        self.pending: frozenset[SharePartition] = frozenset()
        self._keep_alive_due = math.inf
        self._pauses = pauses
        self._session = session
        self._not_before = -math.inf
        self._attempts = 0
        self._backoff = Backoff(spread)

    def next_due(self) -> float:
        """Return when to fetch the pending partitions, or to keep the connection."""
        if not self.pending:
            return self._keep_alive_due if self._session.is_open else math.inf
        return max(self._not_before, min(map(self._pauses.paused_until, self.pending)))

    def on_response(self, now: float) -> None:
        """Postpone the next keep-alive fetch, since the connection was used."""
        self._keep_alive_due = now + KEEP_ALIVE

    def fetchable(self, now: float) -> frozenset[SharePartition]:
        """Return the pending partitions without those whose errors cause a pause."""
        paused_until = self._pauses.paused_until
        return frozenset(each for each in self.pending if paused_until(each) <= now)

    def set_partitions(self, partitions: frozenset[SharePartition]) -> None:
        """Replace the partitions of the leader."""
        self.fixed &= partitions
        if not partitions - self.fixed <= self.pending:
            self._not_before, self._attempts = -math.inf, 0
            self._backoff.reset()
        self.pending = partitions - self.fixed

    def on_connection_lost(self, partitions: frozenset[SharePartition]) -> None:
        """Fix all starts again: a broker that restarted has forgotten them.

        It stores a start offset with the first acknowledgement.
        """
        self.fixed = frozenset()
        self._keep_alive_due = math.inf
        self.set_partitions(partitions)

    def on_fetched(
        self,
        request: ShareFetch,
        response: ShareFetchResponse,
        fetched: frozenset[SharePartition],
        now: float,
    ) -> bool:
        """Handle the response to a fetch; return whether it has fixed the last start.

        A fetch for records waits longer than a broker needs to load the partitions.

        Args:
            request, response: the exchange.
            fetched: the partitions of the session.
            now: the time of the response.
        """
        if not request.max_bytes:
            return False  # it loads nothing
        loaded = {each.share_partition for each in response.partitions}
        failed = {p.share_partition for p in response.partitions if _is_retriable(p)}
        self._attempts += 1
        if request.max_records > 0 or self._attempts >= MAX_ATTEMPTS:
            loaded.update(fetched)
        self._fix(self.pending & (loaded - failed))
        self._not_before = now + self._backoff.next_delay()
        return not self.pending

    def gives_up(
        self,
        request: ShareFetch | ShareAcknowledge,
        response: ShareFetchResponse | ShareAcknowledgeResponse,
    ) -> bool:
        """Count all partitions as fixed if the broker rejects the negative limit.

        The first fetch for records fixes their starts then. Return whether it is so.
        """
        is_rejected = (
            isinstance(request, ShareFetch)
            and request.max_records < 0
            and response.error == Code.INVALID_REQUEST
        )
        if is_rejected:
            self._fix(self.pending)
        return is_rejected

    def _fix(self, partitions: frozenset[SharePartition]) -> None:
        self.fixed |= partitions
        self.pending -= partitions


def _is_retriable(response: PartitionResponse) -> bool:
    """Return whether a partition has an error that is not raised."""
    action = action_for(error_actions.FETCH_PARTITION, response.error)
    return action not in (ErrorAction.PROCEED, ErrorAction.REPORT)
