"""Log lines of a member about its cluster."""

from typing import Any, Final

import anyio

from sharecons.errors import Error
from sharecons.member.fetch_problems import FetchEvent, FetchProblems
from sharecons.member.unassigned_watch import ObservedMember, UnassignedWatch
from sharecons.net.io.event_loop import AutoResetEvent, Clock
from sharecons.net.outages import LOST_DELAY, Outages
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.protocol.acknowledge.positions import ranges_text
from sharecons.protocol.codes import code_name
from sharecons.protocol.error_advice import FIND_COORDINATOR, HEARTBEAT, advice_for
from sharecons.protocol.fetch.events import (
    LeaderEvent,
    LocksLost,
    MetadataStale,
    Throttled,
    UnexpectedResponse,
    lost_count,
    lost_ranges,
)
from sharecons.protocol.group.messages import (
    JOIN_EPOCH,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
)

__all__ = ["STALLED", "MemberLog"]

THROTTLED: Final = (
    "every fetch is throttled by the quota: its records use up a delivery and are not "
    "returned; raise consumer_byte_rate, or lower the batch.size of the producers"
)
STALLED: Final = (
    "a broker returns empty responses without waiting for records: leaving "
    "the group to join again; if this repeats, stop all members of the group together, "
    "so that the broker reloads the group's state"
)

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
LEADERS: Final = ProblemTexts(
    begins="partitions have no leader, waiting",
    lasts="partitions still have no leader, waiting",
    ends="all partitions have leaders again",
)
LEADERLESS_ADVICE: Final = "check the brokers that have their replicas"
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

    def __init__(self, log: Any, clock: Clock, member: ObservedMember) -> None:
        self._log = log
        self._clock = clock
        self._membership = member.membership
        self._machine = metadata = member.metadata
        self.outages = Outages(log, clock)
        self._scope = anyio.CancelScope()
        self._has_ended = False
        self._wakeup = AutoResetEvent()
        self._heartbeats = ProblemLog(log, HEARTBEATS, delay=LOST_DELAY)
        self._metadata = ProblemLog(log, METADATA, delay=LOST_DELAY)
        self._responses = ProblemLog(log, RESPONSES)
        self._leaders = ProblemLog(log, LEADERS, delay=LOST_DELAY)
        self._fetches = FetchProblems(log, clock, lambda: metadata.topic_names)
        self._unassigned = UnassignedWatch(log, clock, member)
        self._logs = [
            self._unassigned.problems,
            self.outages.problems,
            self._heartbeats,
            self._metadata,
            self._responses,
            self._leaders,
            *self._fetches.logs,
        ]

    def add(self, problems: ProblemLog) -> None:
        """Make these problems a part of the member's state."""
        self._logs.append(problems)

    async def run(self) -> None:
        """Look for overdue responses and ended problems, until `end` is called."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._unassigned.run)
                while True:
                    await self._wakeup.wait_until(self.outages.check())
                    self._end_problems(self._clock())

    def _end_problems(self, now: float) -> None:
        self._metadata.end_quiet(now, METADATA_QUIET)
        self._responses.end_quiet(now, RESPONSES_QUIET)
        if self._fetches.can_end:
            # Looking at all partitions would be most of the work of an idle member.
            leaders = self._machine.leaders()
            self._fetches.keep_only(leaders, self._membership.assignment)

    def end(self) -> None:
        """End `run`."""
        self._has_ended = True
        self._scope.cancel()

    # State, for any thread.

    def lasting(self) -> tuple[str, ...]:
        """Return the problems that last and have a line, as text; none after `end`."""
        if self._has_ended:
            return ()
        return tuple(text for log in self._logs for text in log.lasting())

    def is_connected(self) -> bool:
        """Return whether heartbeats, fetches and acknowledgements are accepted."""
        membership = self._membership
        if self._has_ended or not membership.heartbeats.is_connected(self._clock()):
            return False
        return not self._fetches.blocks(membership.assignment)

    def fetch_error(self) -> Error | None:
        """Return the error of a fetch that is repeated now, or None."""
        return self._fetches.error()

    # Events.

    def on_coordinator_response(
        self, request: Any, response: HeartbeatResponse | FindCoordinatorResponse
    ) -> None:
        """Begin or end the problems of the group coordinator."""
        now = self._clock()
        is_heartbeat = isinstance(request, Heartbeat)
        if response.error:
            table = HEARTBEAT if is_heartbeat else FIND_COORDINATOR
            self._heartbeats.on_failure(
                "",
                now,
                request=type(request).__name__,
                reason=code_name(response.error),
                message=response.message or "",
                advice=advice_for(table, response.error),
            )
        elif is_heartbeat and request.member_epoch != JOIN_EPOCH:
            # A member that can only join is removed from the group each time.
            self._heartbeats.on_success("", now)

    def on_metadata(self) -> None:
        """Begin or end a problem for each topic with leaderless partitions."""
        now = self._clock()
        leaderless = self._machine.leaderless()
        for topic, count in leaderless.items():
            self._leaders.on_failure(
                topic, now, topic=topic, partitions=count, advice=LEADERLESS_ADVICE
            )
        for led in self._leaders.keys - leaderless.keys():
            self._leaders.on_success(led, now)

    def on_locks_lost(self, lost: LocksLost) -> None:
        """Log the records that the broker has released."""
        self._log.warning(
            "locks lost",
            reason=lost.reason,
            records=lost_count(lost),
            positions=ranges_text(lost_ranges(lost)),
        )

    def on_event(self, event: LeaderEvent) -> None:
        """Begin or end the problem that an event of a leader is about."""
        match event:
            case MetadataStale(reason, is_logged):
                if not is_logged:
                    self._metadata.on_failure("", self._clock(), reason=reason)
            case UnexpectedResponse(what):
                self._responses.on_failure("", self._clock(), what=what)
            case Throttled(node_id):
                self._log.warning(THROTTLED, node_id=node_id)
            case _ if isinstance(event, FetchEvent):
                self._fetches.on_event(event)
