"""Log lines about a member that has no partitions although its topics exist."""

from typing import Any, Final, Protocol

import anyio

from sharecons.errors import Error
from sharecons.net.io.event_loop import Clock
from sharecons.net.problem_log import REPEAT_INTERVAL, ProblemLog, ProblemTexts
from sharecons.protocol.codes import Code
from sharecons.protocol.group.heartbeat import Membership
from sharecons.protocol.group.metadata import Metadata
from sharecons.protocol.group.states import State
from sharecons.protocol.group.unassigned import STATE_TOPIC_REQUEST, Cause, cause_of

__all__ = ["ObservedMember", "UnassignedWatch"]

UNASSIGNED_DELAY: Final = 10.0
"""Seconds without partitions before a line. A first group takes 3 s on Kafka 4.4, as
its brokers create two topics; assigning takes a second."""

LOOK_INTERVAL: Final = 5.0
WAITING_INTERVAL: Final = 1.0
"""Seconds between two looks, of a member with and without partitions."""

TEXTS: Final = ProblemTexts(
    begins="no partitions assigned, waiting",
    lasts="still no partitions assigned, waiting",
    ends="partitions assigned",
)


class ObservedMember(Protocol):
    """A member whose machines are read here."""

    @property
    def membership(self) -> Membership: ...

    @property
    def metadata(self) -> Metadata: ...

    async def send_to_any(self, request: Any) -> Any: ...


class UnassignedWatch:
    """Looks whether a member has partitions: `run` is a task.

    Attributes:
        problems: the problem, while it lasts.
    """

    def __init__(self, log: Any, clock: Clock, member: ObservedMember) -> None:
        self.problems = ProblemLog(log, TEXTS)
        self._clock = clock
        self._member = member
        self._since: float | None = None
        self._looked_at = 0.0
        self._cause = Cause("", "")

    async def run(self) -> None:
        while True:
            await self._look()
            is_assigned = self._member.membership.assignment
            await anyio.sleep(LOOK_INTERVAL if is_assigned else WAITING_INTERVAL)

    async def _look(self) -> None:
        now = self._clock()
        topics = self._unassigned_topics()
        if not topics:
            self._since = None
            self.problems.on_success("", now)
            return
        since = self._since = now if self._since is None else self._since
        if now - since < UNASSIGNED_DELAY:
            return
        if not self.problems.keys or now - self._looked_at >= REPEAT_INTERVAL - 1:
            self._looked_at = now
            try:
                self._cause = await self._find_cause()
            except Error:
                return  # an outage, which has lines of its own
            topics = self._unassigned_topics()  # partitions can have arrived meanwhile
        if topics:
            reason, advice = self._cause
            self.problems.on_failure(
                "",
                self._clock(),
                since=since,
                topics=", ".join(topics),
                reason=reason,
                advice=advice,
            )

    def _unassigned_topics(self) -> list[str]:
        """Return the topics of a member without partitions that exist."""
        membership = self._member.membership
        if membership.state is not State.MEMBER or membership.assignment:
            return []
        codes = self._member.metadata.topic_codes.items()
        return sorted(name for name, code in codes if code == Code.NONE)

    async def _find_cause(self) -> Cause:
        response = await self._member.send_to_any(STATE_TOPIC_REQUEST)
        described = response.topics[0] if response.topics else None
        return cause_of(described, len(response.brokers))
