"""Log lines about fetches and acknowledgements that leaders reject.

The consumer repeats these fetches by itself. The application receives no error, except
for a topic without READ, once. A leader that rejects whole fetches is one problem.
Partitions that fail with the same error are one problem together. The results of
acknowledgements have their errors; few programs look at them.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from sharecons.errors import BrokerError
from sharecons.net.io.event_loop import Clock
from sharecons.net.outages import LOST_DELAY
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.protocol import error_advice
from sharecons.protocol.codes import code_name
from sharecons.protocol.error_advice import advice_for
from sharecons.protocol.fetch.events import FetchRecovered, PartitionError
from sharecons.protocol.fetch.fetch_pauses import AUTHORIZATION
from sharecons.protocol.fetch.retried_errors import (
    AcksAccepted,
    AcksRejected,
    FetchAccepted,
    FetchRejected,
    PartitionFetched,
    PartitionRetried,
)
from sharecons.protocol.partitions import SharePartition, TopicId

__all__ = ["FetchEvent", "FetchProblems"]

QUIET: Final = 10.0
"""Seconds without the error after which it has ended: partitions that fail now and then
would otherwise cause two lines each time."""

ACKS_QUIET: Final = 60.0
"""The same of acknowledgements, which need records: a rejected record comes again when
its lock has ended."""

MAX_NAMED: Final = 3
"""How many partitions a line names."""

NOT_NEEDED: Final = "not needed any more"

REQUESTS: Final = ProblemTexts(
    begins="fetches rejected, retrying",
    lasts="fetches still rejected, retrying",
    ends="fetches accepted again",
)
PARTITIONS: Final = ProblemTexts(
    begins="partitions cannot be fetched, retrying",
    lasts="partitions still cannot be fetched, retrying",
    ends="partitions are fetched again",
)
ACKS: Final = ProblemTexts(
    begins="acknowledgements rejected",
    lasts="acknowledgements still rejected",
    ends="acknowledgements accepted again",
)

PartitionFailed = PartitionRetried | PartitionError
FetchEvent = (
    AcksAccepted
    | AcksRejected
    | FetchAccepted
    | FetchRejected
    | PartitionFailed
    | PartitionFetched
    | FetchRecovered
)


class FetchProblems:
    """Logs the fetches and acknowledgements of one member that leaders reject.

    Args:
        topic_names: returns topic names by id.

    Attributes:
        logs: the problems of leaders, of partitions and of acknowledgements.
    """

    def __init__(
        self, log: Any, clock: Clock, topic_names: Callable[[], Mapping[TopicId, str]]
    ) -> None:
        self._clock = clock
        self._topic_names = topic_names
        self._requests = ProblemLog(log, REQUESTS, delay=LOST_DELAY)
        self._partitions = ProblemLog(log, PARTITIONS, delay=LOST_DELAY, gap=LOST_DELAY)
        self._acks = ProblemLog(log, ACKS, delay=LOST_DELAY, gap=ACKS_QUIET)
        self.logs = (self._requests, self._partitions, self._acks)
        self._rejected: dict[int, FetchRejected] = {}
        self._failed: dict[SharePartition, PartitionFailed] = {}
        self._unacknowledged: dict[SharePartition, AcksRejected] = {}

    def on_event(self, event: FetchEvent) -> None:
        now = self._clock()
        match event:
            case FetchRejected(node_id):
                self._rejected[node_id] = event
                self._requests.on_failure(
                    node_id, now, node_id=node_id, **_cause_of(event)
                )
            case FetchAccepted(node_id):
                self._rejected.pop(node_id, None)
                self._requests.on_success(node_id, now)
            case PartitionError(_, code) if code not in AUTHORIZATION:
                pass  # only a record would show that it has ended
            case PartitionRetried(share_partition, code) | PartitionError(
                share_partition, code
            ):
                self._failed[share_partition] = event
                self._partitions.on_failure(
                    code,
                    now,
                    partitions=self._names(code, self._failed),
                    **_cause_of(event),
                )
            case PartitionFetched(share_partition) | FetchRecovered(share_partition):
                self._failed.pop(share_partition, None)
            case AcksRejected(share_partition, code):
                self._unacknowledged[share_partition] = event
                names = self._names(code, self._unacknowledged)
                self._acks.on_failure(code, now, partitions=names, **_cause_of(event))
            case AcksAccepted(share_partition):
                self._on_acknowledged(share_partition, now)

    def _on_acknowledged(self, share_partition: SharePartition, now: float) -> None:
        """End the problem of an error that no partition has any more."""
        self._unacknowledged.pop(share_partition, None)
        for code in self._acks.keys - {e.code for e in self._unacknowledged.values()}:
            self._acks.on_success(code, now)

    @property
    def can_end(self) -> bool:
        """True if `keep_only` can change anything."""
        return bool(
            self._rejected or self._failed or self._partitions.keys or self._acks.keys
        )

    def keep_only(
        self, node_ids: Collection[int], assignment: Collection[SharePartition]
    ) -> None:
        """Drop other leaders and partitions, and end the problems without any.

        Call it every few seconds.
        """
        now = self._clock()
        for node_id in self._rejected.keys() - set(node_ids):
            del self._rejected[node_id]
            self._requests.on_success(node_id, now, NOT_NEEDED)
        for share_partition in self._failed.keys() - set(assignment):
            del self._failed[share_partition]
        for share_partition in self._unacknowledged.keys() - set(assignment):
            self._on_acknowledged(share_partition, now)
        for code in self._acks.end_quiet(now, ACKS_QUIET, NOT_NEEDED):
            for each, event in list(self._unacknowledged.items()):
                if event.code == code:
                    del self._unacknowledged[each]
        failing = {event.code for event in self._failed.values()}
        self._partitions.end_quiet(now, QUIET, keep=failing)

    def blocks(self, assignment: Collection[SharePartition]) -> bool:
        """Return whether a leader rejects requests, or no partition can be used.

        This is so once the problem is logged. A partition cannot be used if its fetches
        or its acknowledgements are rejected.
        """
        if self._requests.is_logged:
            return True
        unusable = set(self._failed) if self._partitions.is_logged else set()
        if self._acks.is_logged:
            unusable.update(self._unacknowledged)
            if any(event.is_whole for event in self._unacknowledged.values()):
                return True
        return bool(assignment) and unusable.issuperset(assignment)

    def error(self) -> BrokerError | None:
        """Return the error of a fetch that is repeated now, or None."""
        for rejected in self._rejected.values():
            return _error(f"node {rejected.node_id} rejects fetches", rejected)
        for share_partition, failed in self._failed.items():
            if isinstance(failed, PartitionRetried):
                return _error(f"fetching {self._name(share_partition)}", failed)
        return None

    def _names(
        self,
        code: int,
        events: Mapping[SharePartition, PartitionFailed]
        | Mapping[SharePartition, AcksRejected],
    ) -> str:
        """Return the names of the partitions with an error."""
        failing = sorted(p for p, event in events.items() if event.code == code)
        names = ", ".join(map(self._name, failing[:MAX_NAMED]))
        more = len(failing) - MAX_NAMED
        return f"{names} and {more} more" if more > 0 else names

    def _name(self, share_partition: SharePartition) -> str:
        topic_id, partition = share_partition
        return f"{self._topic_names().get(topic_id, '?')}-{partition}"


def _cause_of(
    event: FetchRejected | PartitionFailed | AcksRejected,
) -> Mapping[str, Any]:
    advice = advice_for(error_advice.FETCH, event.code)
    reason, message = code_name(event.code), event.message or ""
    return {"reason": reason, "message": message, "advice": advice}


def _error(what: str, event: FetchRejected | PartitionRetried) -> BrokerError:
    name = code_name(event.code)
    reason = f"{name} ({event.message})" if event.message else name
    advice = advice_for(error_advice.FETCH, event.code)
    return BrokerError(f"{what}: {reason}; {advice}", code=event.code, name=name)
