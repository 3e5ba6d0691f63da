"""Pauses after empty responses that come early, and what ends them."""

import math
from typing import Final, final

from sharecons.protocol.backoff import Backoff
from sharecons.protocol.share_messages import ShareFetch

__all__ = ["REOPEN", "STALLED", "WITHOUT_PAUSE", "EmptyResponses"]

WITHOUT_PAUSE: Final = 2
"""The number of early empty responses in a row that cause no pause."""

REOPEN: Final = 8
STALLED: Final = 12
"""With a `max_wait` of 0.5 s: after about 0.6 and 2.5 seconds."""

FIRST_PAUSE: Final = 0.01
MIN_MAX_PAUSE: Final = 0.05
"""Seconds: the first pause, and the longest one where `max_wait` is shorter."""

EARLY_FRACTION: Final = 0.5
"""A response is early if it took less than this fraction of the allowed time."""

MIN_COUNTED_WAIT: Final = 0.002
"""Seconds; fetches with a shorter wait do not count: brokers use milliseconds."""

GROWTH: Final[tuple[int, ...]] = (1, 1, 1, 4, 16, 64, 256)
"""The factor for the requested records, by the number of responses in a row."""

LAST_GROWTH: Final = len(GROWTH) - 1


@final
class EmptyResponses:
    """The early empty responses of one leader, and the pauses after them.

    A broker that has no records waits as long as the fetch allows. If a response is
    empty much earlier, another member was faster, or the records belong to an aborted
    transaction. But a broker can also return such responses forever: Kafka 4.3.0 and
    4.4.0 do so if the log start offset passes records that are held.

    The first WITHOUT_PAUSE of these responses in a row change nothing. After each one
    more the next fetch is sent later and requests more records, so that aborted
    transactions are passed over as fast as before. After REOPEN in a row the session is
    reopened; after STALLED the member joins again: the broker loads the state of a
    group without members again, which ends the fault above if this is the only member.

    Records, or a response after half of the allowed time, end the row.

    Attributes:
        in_a_row: the number of early empty responses in a row.
        due: no fetch is sent before this time.
        must_reopen: the session must be closed and opened again.
    """

    def __init__(self, spread: float, max_wait: float) -> None:
        self.in_a_row = 0
        self.due = -math.inf
        self.must_reopen = False
        self._never_waits = max_wait <= 0.0
        limit = max(max_wait, MIN_MAX_PAUSE)
        self._backoff = Backoff(spread, first=FIRST_PAUSE, limit=limit)

    @property
    def growth(self) -> int:
        """The factor for the records that the next fetch requests."""
        return 1 if self._never_waits else GROWTH[min(self.in_a_row, LAST_GROWTH)]

    @property
    def is_stalled(self) -> bool:
        """True if only leaving the group can end the empty responses."""
        return self.in_a_row >= STALLED and not self._never_waits

    def on_empty_response(
        self, request: ShareFetch, sent_at: float, now: float
    ) -> None:
        """Count an early empty response; decide on a pause or another session."""
        allowed = request.max_wait
        if allowed < MIN_COUNTED_WAIT and not self._never_waits:
            return
        if now - sent_at >= allowed * EARLY_FRACTION and not self._never_waits:
            self.reset()
            return
        self.in_a_row += 1
        if self.in_a_row > WITHOUT_PAUSE:
            self.due = now + self._backoff.next_delay()
        # Once in a row: another session did not help, so the next step is to rejoin.
        if self.in_a_row == REOPEN and not self._never_waits:
            self.must_reopen = True

    def end_pause(self) -> None:
        """End the pause, as something has changed at the broker."""
        self.due = -math.inf

    def on_reopened(self) -> None:
        """End the pause, since the session is being closed."""
        self.must_reopen = False
        self.end_pause()

    def reset(self) -> None:
        """Start a new row."""
        self.in_a_row = 0
        self.on_reopened()
        self._backoff.reset()
