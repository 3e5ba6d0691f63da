"""The log of a consumer's acknowledgement results, shared by all its leaders."""

from collections.abc import Callable
from typing import NamedTuple, Optional, final

from sharecons._record import AcknowledgeType
from sharecons.protocol.acknowledge.damaged_records import DamagedRecords

__all__ = ["AcknowledgeFailure", "AcknowledgeResult", "LastRelease", "ResultLog"]


class AcknowledgeFailure(NamedTuple):
    """Why an acknowledgement was not applied.

    Attributes:
        code, name: Kafka's error code and its name.
        message: the broker's error message, or an explanation by this client.
    """

    code: int
    name: str
    message: str


class AcknowledgeResult(NamedTuple):
    """The result of acknowledging a range of records.

    Attributes:
        topic, partition: the records' partition.
        first_offset, last_offset: the range, both inclusive.
        type: how they were acknowledged.
        error: None if the broker applied it. An error means that it did not, or that
            this is unknown: the records can be delivered again.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    type: AcknowledgeType
    # mypyc keeps the annotation of a union as `type`, unless it is written like this.
    error: "Optional[AcknowledgeFailure]"  # noqa: UP045


class LastRelease(NamedTuple):
    """The end of the last delivery of a range of records, which archived them.

    Attributes:
        topic, partition: the records' partition.
        first_offset, last_offset: the range, both inclusive.
        delivery_count: how often they were delivered.
        is_lost: their locks were lost; otherwise they were released.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int
    is_lost: bool = False


def _same_thread() -> int:
    return 0


@final
class ResultLog:
    """The state that the acknowledgements to all leaders of a consumer share.

    Attributes:
        clock: returns the current time, for `Record.held`.
        closed: records can no longer be acknowledged.
        is_guarded: only renewals are allowed now: a worker acknowledges its records
            when their handlers end.
        results: the results to report; emptied by the caller.
        has_listener: also log applied acknowledgements that no commit() waits for.
        overrun_count: records acknowledged after their locks had ended; reset by the
            caller.
        delivery_limit: the group's delivery limit; 0 if not known.
        renews: the group allows renewals, as far as that is known.
        needs_renewals: `renews` decides about a delayed release; reset by the caller.
        early_releases: delayed releases that were sent early, as the broker or the
            group does not allow renewals; reset by the caller.
        advice: the remedy if processing takes longer than the lock.
        archived: ends of deliveries that archived records; emptied by the caller.
        reports_lost: lost locks are among `archived`. A worker reports its own.
        damaged: the damaged records that were released.
        thread: the identity of the only thread that can acknowledge records.
        this_thread: returns the identity of the calling thread.
    """

    __slots__ = (
        "advice",
        "archived",
        "clock",
        "closed",
        "damaged",
        "delivery_limit",
        "early_releases",
        "has_listener",
        "is_guarded",
        "needs_renewals",
        "overrun_count",
        "renews",
        "reports_lost",
        "results",
        "this_thread",
        "thread",
        "wake",
    )

    def __init__(
        self,
        wake: Callable[[], None],
        clock: Callable[[], float],
        this_thread: Callable[[], int] = _same_thread,
    ) -> None:
        self.clock = clock
        self.this_thread = this_thread
        self.thread = this_thread()
        self.closed = False
        self.is_guarded = False
        self.results: list[AcknowledgeResult] = []
        self.has_listener = True
        self.overrun_count = 0
        self.advice = "call renew() or raise share.record.lock.duration.ms"
        self.delivery_limit = 0
        self.renews = True
        self.needs_renewals = False
        self.early_releases = 0
        self.archived: list[LastRelease] = []
        self.reports_lost = True
        self.damaged = DamagedRecords()
        self.wake = wake

    @property
    def is_filled(self) -> bool:
        """True while it has results, overruns or archiving releases to report."""
        return bool(self.results or self.overrun_count or self.archived)
