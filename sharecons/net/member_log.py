"""Log lines of a member about its cluster, at most one a minute per problem."""

from typing import Any, Final

import anyio

from sharecons.net.io.event_loop import AutoResetEvent, Clock
from sharecons.net.outages import LOST_DELAY, Outages
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.protocol.codes import code_name
from sharecons.protocol.fetch.events import MetadataStale
from sharecons.protocol.messages import (
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
)

__all__ = ["MemberLog"]

METADATA_QUIET: Final = 10.0
RESPONSES_QUIET: Final = 60.0
"""Seconds without an occurrence after which a problem has ended."""

HEARTBEATS: Final = ProblemTexts(
    begins="heartbeats not accepted, retrying",
    lasts="heartbeats still not accepted, retrying",
    ends="heartbeats accepted again",
)
METADATA: Final = ProblemTexts(
    begins="metadata is stale, requesting it again",
    lasts="metadata is still stale, requesting it again",
    ends="metadata is up to date again",
)
RESPONSES: Final = ProblemTexts(
    begins="unexpected response",
    lasts="still unexpected responses",
    ends="no unexpected responses any more",
)


class MemberLog:
    """Logs the problems of one member with its cluster.

    Args:
        log: the member's logger.

    Attributes:
        outages: the outages of brokers.
    """

    def __init__(self, log: Any, clock: Clock) -> None:
        self._clock = clock
        self.outages = Outages(log, clock)
        self._scope = anyio.CancelScope()
        self._wakeup = AutoResetEvent()
        self._heartbeats = ProblemLog(log, HEARTBEATS, delay=LOST_DELAY)
        self._metadata = ProblemLog(log, METADATA, delay=LOST_DELAY)
        self._responses = ProblemLog(log, RESPONSES)

    async def run(self) -> None:
        """Look for overdue responses and ended problems, until `end` is called."""
        with self._scope:
            while True:
                await self._wakeup.wait_until(self.outages.check())
                now = self._clock()
                self._metadata.end_quiet(now, METADATA_QUIET)
                self._responses.end_quiet(now, RESPONSES_QUIET)

    def end(self) -> None:
        """End `run`."""
        self._scope.cancel()

    def on_coordinator_response(
        self, request: Any, response: HeartbeatResponse | FindCoordinatorResponse
    ) -> None:
        """Note whether the group coordinator is found and accepts heartbeats."""
        now = self._clock()
        if response.error:
            self._heartbeats.on_failure("", now, reason=code_name(response.error))
        elif isinstance(request, Heartbeat):
            self._heartbeats.on_success("", now)

    def on_metadata_stale(self, event: MetadataStale) -> None:
        """Note an error that newer metadata can help; outages are logged alone."""
        if not event.is_outage:
            self._metadata.on_failure("", self._clock(), reason=event.reason)

    def on_unexpected_response(self, what: str) -> None:
        """Note a response that violates the protocol."""
        self._responses.on_failure("", self._clock(), what=what)
