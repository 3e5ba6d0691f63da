"""The state of each job of a demo, and the final check.

Workers report each delivery and acknowledgement. A job is done once the broker has
confirmed its acknowledgement. Each redelivery of a job must have a reason, such as a
release or a killed consumer, and the broker's delivery count must agree.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sharecons.demo.plan import Decision

__all__ = [
    "ConsumerStats",
    "Event",
    "EventKind",
    "Job",
    "JobState",
    "JobTracker",
    "RedeliveryReason",
    "Totals",
]

DELIVERY_LIMIT: Final = 5
"""Deliveries after which the broker archives a job, by default."""


class JobState(Enum):
    """The state of a job."""

    WAITING = "waiting"
    ACQUIRED = "acquired"
    UNCONFIRMED = "acknowledged"
    """Accepted or rejected by a consumer, but not yet confirmed by the broker."""
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    ARCHIVED = "archived"


FINAL_STATES: Final = frozenset(
    (JobState.ACCEPTED, JobState.REJECTED, JobState.ARCHIVED)
)


class RedeliveryReason(Enum):
    """Why a job was delivered again."""

    RELEASED = "released"
    KILLED = "after a consumer was killed"
    PREFETCHED = "prefetched by the killed consumer"
    LOCK_EXPIRED = "after a lock expired"


class EventKind(Enum):
    """The kind of an event."""

    FAILED = "failed"
    REDELIVERED = "redelivered"
    KILLED = "killed"
    REJECTED = "rejected"
    ARCHIVED = "archived"
    LOCK_EXPIRED = "lock expired"


@dataclass(frozen=True, slots=True)
class Event:
    """An event that the views show.

    Attributes:
        time: seconds since the start of the demo.
        consumer: the consumer's name; empty for the broker.
        previous_consumer: for a redelivery, the consumer that had the job before.
        reason: for a redelivery, why the job was delivered again.
    """

    time: float
    consumer: str
    kind: EventKind
    jobs: tuple[int, ...]
    delivery_count: int = 0
    previous_consumer: str = ""
    reason: RedeliveryReason | None = None


@dataclass(slots=True)
class Job:
    """One job.

    Attributes:
        consumer: the consumer that has the job; empty if none.
        accepted: how often the broker confirmed that it was accepted.
        redelivery_reasons: consumers that had the job, and why they lost it.
    """

    number: int
    state: JobState = JobState.WAITING
    consumer: str = ""
    delivery_count: int = 0
    accepted: int = 0
    redelivery_reasons: list[tuple[str, RedeliveryReason]] = field(default_factory=list)

    @property
    def unexplained_deliveries(self) -> int:
        """The number of redeliveries without a reason; negative for too few."""
        # The last reason of an archived job did not lead to a redelivery.
        archived = self.state is JobState.ARCHIVED
        return max(self.delivery_count - 1, 0) - (
            len(self.redelivery_reasons) - archived
        )


@dataclass(slots=True)
class ConsumerStats:
    """The counts of one consumer, and the numbers of its jobs."""

    acquired: list[int] = field(default_factory=list)
    unconfirmed: set[int] = field(default_factory=set)
    deliveries: int = 0
    accepted: int = 0
    released: int = 0
    rejected: int = 0
    redelivered: int = 0
    failed_at: float | None = None
    killed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The numbers of the summary."""

    produced: int
    accepted: int
    rejected: tuple[int, ...]
    """The numbers of the rejected jobs."""
    archived: int
    unfinished: int
    delivered: int
    """The number of jobs that were delivered at least once."""
    redelivered: int
    """The number of redeliveries, by the broker's delivery counts."""
    reasons: dict[RedeliveryReason, int]
    accepted_twice: int
    lag: int | None


class JobTracker:
    """The states of all jobs and the counts of all consumers.

    Attributes:
        expected: how many jobs the demo produces in total.
        jobs: the jobs produced so far, by number.
        consumers: the counts of each consumer, by name.
        events: events for the views, oldest first.
        lag: the group's lag at the broker at the end; None if unknown.
    """

    def __init__(self, names: Iterable[str], *, expected: int) -> None:
        self.expected = expected
        self.jobs: dict[int, Job] = {}
        self.consumers = {name: ConsumerStats() for name in names}
        self.events: list[Event] = []
        self.lag: int | None = None
        self._unexpected_deliveries: list[str] = []
        self._state_counts: Counter[JobState] = Counter()

    def on_produced(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            # A job can be delivered before the response to its Produce request.
            if number not in self.jobs:
                self.jobs[number] = Job(number)
                self._state_counts[JobState.WAITING] += 1

    def on_delivered(
        self, number: int, consumer: str, delivery_count: int, now: float
    ) -> None:
        self.on_produced((number,))
        job, stats = self.jobs[number], self.consumers[consumer]
        if job.state in FINAL_STATES:
            self._unexpected_deliveries.append(
                f"job {number} was delivered to {consumer} "
                f"after it was {job.state.value}"
            )
        if job.state is JobState.ACQUIRED:
            self._record_expired_lock(job, job.consumer, now)
        self._account_for_prefetched(job, delivery_count)
        job.delivery_count = max(job.delivery_count, delivery_count)
        job.consumer = consumer
        self._set_state(job, JobState.ACQUIRED)
        stats.acquired.append(number)
        stats.deliveries += 1
        if delivery_count > 1:
            stats.redelivered += 1
            previous, reason = (
                job.redelivery_reasons[-1] if job.redelivery_reasons else ("", None)
            )
            self._add_event(now, consumer, EventKind.REDELIVERED, job, previous, reason)

    def on_acknowledged(
        self, number: int, consumer: str, decision: Decision, now: float
    ) -> None:
        """Record that a consumer acknowledged a job that it has."""
        job, stats = self.jobs[number], self.consumers[consumer]
        self._remove_from_consumer(job, consumer)
        stats.unconfirmed.add(number)
        if decision is Decision.RELEASE:
            stats.failed_at = now
            job.redelivery_reasons.append((consumer, RedeliveryReason.RELEASED))
            self._set_state(job, JobState.WAITING)
            self._add_event(now, consumer, EventKind.FAILED, job)
        else:
            self._set_state(job, JobState.UNCONFIRMED)

    def on_ack_confirmed(
        self, number: int, consumer: str, decision: Decision, now: float
    ) -> None:
        """Record that the broker confirmed an acknowledgement."""
        job, stats = self.jobs[number], self.consumers[consumer]
        stats.unconfirmed.discard(number)
        match decision:
            case Decision.ACCEPT:
                stats.accepted += 1
                job.accepted += 1
                self._set_state(job, JobState.ACCEPTED)
            case Decision.REJECT:
                stats.rejected += 1
                self._set_state(job, JobState.REJECTED)
                self._add_event(now, consumer, EventKind.REJECTED, job)
            case Decision.RELEASE:
                stats.released += 1
                self._archive_at_limit(job, now)

    def on_ack_rejected(
        self, number: int, consumer: str, decision: Decision, now: float
    ) -> None:
        """Record that the broker rejected an acknowledgement after the lock expired."""
        job, stats = self.jobs[number], self.consumers[consumer]
        stats.unconfirmed.discard(number)
        if decision is Decision.RELEASE:
            job.redelivery_reasons.remove((consumer, RedeliveryReason.RELEASED))
        self._record_expired_lock(job, consumer, now)

    def set_lag(self, lag: int | None) -> None:
        """Set the group's lag at the broker; None if it is unknown."""
        self.lag = lag

    def on_lock_expired(self, number: int, consumer: str, now: float) -> None:
        """Record that a consumer lost a job because its lock expired."""
        if self.jobs[number].consumer == consumer:
            self._record_expired_lock(self.jobs[number], consumer, now)

    def on_killed(self, consumer: str, now: float) -> None:
        """Record that a consumer was killed and that its jobs become available."""
        stats = self.consumers[consumer]
        stats.killed_at = now
        acquired = tuple(sorted(stats.acquired))
        self.events.append(Event(now, consumer, EventKind.KILLED, acquired))
        for number in acquired:
            job = self.jobs[number]
            self._remove_from_consumer(job, consumer)
            job.redelivery_reasons.append((consumer, RedeliveryReason.KILLED))
            self._set_state(job, JobState.WAITING)
            self._archive_at_limit(job, now)

    @property
    def is_finished(self) -> bool:
        return self.done_count == self.expected

    @property
    def done_count(self) -> int:
        return sum(self._state_counts[fate] for fate in FINAL_STATES)

    def count(self, state: JobState) -> int:
        return self._state_counts[state]

    def is_confirmed(self, consumer: str) -> bool:
        """Return True if a consumer has no unconfirmed acknowledgements."""
        return not self.consumers[consumer].unconfirmed

    def totals(self) -> Totals:
        jobs = self.jobs.values()
        reasons = Counter(why for job in jobs for _, why in job.redelivery_reasons)
        return Totals(
            produced=len(self.jobs),
            accepted=self.count(JobState.ACCEPTED),
            rejected=tuple(
                job.number for job in jobs if job.state is JobState.REJECTED
            ),
            archived=self.count(JobState.ARCHIVED),
            unfinished=len(self.jobs) - self.done_count,
            delivered=sum(job.delivery_count > 0 for job in jobs),
            redelivered=sum(max(job.delivery_count - 1, 0) for job in jobs),
            reasons={why: reasons[why] for why in RedeliveryReason},
            accepted_twice=sum(job.accepted > 1 for job in jobs),
            lag=self.lag,
        )

    def discrepancies(self) -> list[str]:
        """Return a line for each discrepancy; an empty list if the check succeeds."""
        jobs = self.jobs.values()
        found = list(self._unexpected_deliveries)
        if len(jobs) != self.expected:
            found.append(f"jobs seen: {len(jobs)} instead of {self.expected}")
        if unfinished := [job.number for job in jobs if job.state not in FINAL_STATES]:
            found.append(f"neither accepted nor rejected: {_format_jobs(unfinished)}")
        if self.lag:
            found.append(f"lag at the broker: {self.lag}")
        if twice := [job.number for job in jobs if job.accepted > 1]:
            found.append(f"accepted more than once: {_format_jobs(twice)}")
        unexplained = [
            job.number
            for job in jobs
            if job.state in FINAL_STATES and job.unexplained_deliveries
        ]
        if unexplained:
            found.append(
                f"delivery count without matching reasons: {_format_jobs(unexplained)}"
            )
        return found

    def _account_for_prefetched(self, job: Job, delivery_count: int) -> None:
        """Explain missing deliveries by jobs that killed consumers had prefetched."""
        for consumer, stats in self.consumers.items():
            missing = delivery_count - 1 - len(job.redelivery_reasons)
            accounted_for = (
                consumer,
                RedeliveryReason.KILLED,
            ) in job.redelivery_reasons or (
                consumer,
                RedeliveryReason.PREFETCHED,
            ) in job.redelivery_reasons
            if stats.killed_at is not None and missing > 0 and not accounted_for:
                job.redelivery_reasons.append((consumer, RedeliveryReason.PREFETCHED))

    def _record_expired_lock(self, job: Job, consumer: str, now: float) -> None:
        self._remove_from_consumer(job, consumer)
        job.redelivery_reasons.append((consumer, RedeliveryReason.LOCK_EXPIRED))
        if job.state is not JobState.ACQUIRED and job.state not in FINAL_STATES:
            self._set_state(job, JobState.WAITING)
        self._add_event(now, consumer, EventKind.LOCK_EXPIRED, job)

    def _remove_from_consumer(self, job: Job, consumer: str) -> None:
        stats = self.consumers[consumer]
        if job.number in stats.acquired:
            stats.acquired.remove(job.number)
        if job.consumer == consumer:
            job.consumer = ""
            if job.state is JobState.ACQUIRED:
                self._set_state(job, JobState.WAITING)

    def _archive_at_limit(self, job: Job, now: float) -> None:
        if job.delivery_count >= DELIVERY_LIMIT and job.state is JobState.WAITING:
            self._set_state(job, JobState.ARCHIVED)
            self._add_event(now, "", EventKind.ARCHIVED, job)

    def _set_state(self, job: Job, state: JobState) -> None:
        self._state_counts[job.state] -= 1
        self._state_counts[state] += 1
        job.state = state

    def _add_event(
        self,
        now: float,
        consumer: str,
        kind: EventKind,
        job: Job,
        previous: str = "",
        reason: RedeliveryReason | None = None,
    ) -> None:
        numbers, count = (job.number,), job.delivery_count
        self.events.append(Event(now, consumer, kind, numbers, count, previous, reason))


def _format_jobs(numbers: list[int]) -> str:
    shown = ", ".join(map(str, sorted(numbers)[:10]))
    more = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
    return f"job{'s' if len(numbers) > 1 else ''} {shown}{more}"
