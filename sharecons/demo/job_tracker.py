"""The books of a demo: what happened to each job, and whether it adds up.

Whoever works tells what happens, and when; a job is done when the broker confirmed
it, not when somebody said so. Each delivery after a job's first must have a reason:
somebody let the job go, and the broker counts just as often.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sharecons.demo.plan import Verdict

__all__ = ["Event", "Fate", "Job", "Ledger", "Sums", "Tally", "What", "Why"]

DELIVERY_LIMIT: Final = 5
"""DeliveryQueue after which the broker archives a job: its default."""


class Fate(Enum):
    """Where a job is."""

    WAITING = "waiting"
    HELD = "in hand"
    SAID = "said"
    """Accepted or rejected, and not confirmed by the broker yet."""
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    ARCHIVED = "archived"


DONE: Final = frozenset((Fate.ACCEPTED, Fate.REJECTED, Fate.ARCHIVED))


class Why(Enum):
    """Why a job came again."""

    RELEASED = "released"
    KILLED = "held by the one killed"
    AHEAD = "fetched ahead by that one"
    EXPIRED = "held past the end of the lock"


class What(Enum):
    """What is worth telling."""

    FAILED = "failed"
    AGAIN = "again"
    KILLED = "killed"
    REJECTED = "rejected"
    ARCHIVED = "archived"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `whose` and `why` tell who had let the job go."""

    at: float
    who: str
    what: What
    jobs: tuple[int, ...]
    delivery_count: int = 0
    whose: str = ""
    why: Why | None = None


@dataclass(slots=True)
class Job:
    """One job; `let_go` tells who had it before, and why it came again."""

    number: int
    fate: Fate = Fate.WAITING
    holder: str = ""
    delivery_count: int = 0
    accepted: int = 0
    let_go: list[tuple[str, Why]] = field(default_factory=list)

    @property
    def unexplained(self) -> int:
        """DeliveryQueue more (or fewer) than there are reasons for."""
        # What is archived at the limit was let go once more than it came again.
        last = self.fate is Fate.ARCHIVED
        return max(self.delivery_count - 1, 0) - (len(self.let_go) - last)


@dataclass(slots=True)
class Tally:
    """One consumer's account. `unconfirmed` are jobs that it said something of."""

    held: list[int] = field(default_factory=list)
    unconfirmed: set[int] = field(default_factory=set)
    deliveries: int = 0
    accepted: int = 0
    released: int = 0
    rejected: int = 0
    again: int = 0
    failed_at: float | None = None
    killed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The closing account."""

    produced: int
    accepted: int
    rejected: tuple[int, ...]
    """Which jobs."""
    archived: int
    left: int
    delivered: int
    """Jobs that were delivered at least once."""
    again: int
    """DeliveryQueue after each job's first, as the broker counts them."""
    reasons: dict[Why, int]
    twice: int
    lag: int | None


class Ledger:
    """What happened so far.

    Attributes:
        jobs: by number, as far as they are written.
        tallies: by consumer.
        events: what is worth telling, oldest first.
        lag: jobs that are open by the broker's own count, if it was asked.
    """

    def __init__(self, names: Iterable[str], *, expected: int) -> None:
        self.expected = expected
        self.jobs: dict[int, Job] = {}
        self.tallies = {name: Tally() for name in names}
        self.events: list[Event] = []
        self.lag: int | None = None
        self._oddities: list[str] = []
        self._fates: Counter[Fate] = Counter()

    # What happens.

    def produced(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            # A job may be worked before its producer hears that it was written.
            if number not in self.jobs:
                self.jobs[number] = Job(number)
                self._fates[Fate.WAITING] += 1

    def delivered(self, number: int, who: str, delivery_count: int, now: float) -> None:
        self.produced((number,))
        job, tally = self.jobs[number], self.tallies[who]
        if job.fate in DONE:
            self._oddities.append(
                f"job {number} was {job.fate.value}, and was delivered to {who} again"
            )
        if job.fate is Fate.HELD:
            self._expired(job, job.holder, now)
        self._explain(job, delivery_count)
        job.delivery_count = max(job.delivery_count, delivery_count)
        job.holder = who
        self._turn(job, Fate.HELD)
        tally.held.append(number)
        tally.deliveries += 1
        if delivery_count > 1:
            tally.again += 1
            whose, why = job.let_go[-1] if job.let_go else ("", None)
            self._tell(now, who, What.AGAIN, job, whose, why)

    def said(self, number: int, who: str, verdict: Verdict, now: float) -> None:
        """A consumer said something of a job that it holds."""
        job, tally = self.jobs[number], self.tallies[who]
        self._put_down(job, who)
        tally.unconfirmed.add(number)
        if verdict is Verdict.RELEASE:
            tally.failed_at = now
            job.let_go.append((who, Why.RELEASED))
            self._turn(job, Fate.WAITING)
            self._tell(now, who, What.FAILED, job)
        else:
            self._turn(job, Fate.SAID)

    def confirmed(self, number: int, who: str, verdict: Verdict, now: float) -> None:
        """The broker did as a consumer said."""
        job, tally = self.jobs[number], self.tallies[who]
        tally.unconfirmed.discard(number)
        match verdict:
            case Verdict.ACCEPT:
                tally.accepted += 1
                job.accepted += 1
                self._turn(job, Fate.ACCEPTED)
            case Verdict.REJECT:
                tally.rejected += 1
                self._turn(job, Fate.REJECTED)
                self._tell(now, who, What.REJECTED, job)
            case Verdict.RELEASE:
                tally.released += 1
                self._archive_at_limit(job, now)

    def refused(self, number: int, who: str, verdict: Verdict, now: float) -> None:
        """The broker did not do as a consumer said: the lock had ended."""
        job, tally = self.jobs[number], self.tallies[who]
        tally.unconfirmed.discard(number)
        if verdict is Verdict.RELEASE:
            job.let_go.remove((who, Why.RELEASED))
        self._expired(job, who, now)

    def counted(self, lag: int | None) -> None:
        """The broker told how many jobs are open by its own count."""
        self.lag = lag

    def expired(self, number: int, who: str, now: float) -> None:
        """A consumer found that it holds a job no longer."""
        if self.jobs[number].holder == who:
            self._expired(self.jobs[number], who, now)

    def killed(self, who: str, now: float) -> None:
        """A consumer is no more; the broker lets go what it held."""
        tally = self.tallies[who]
        tally.killed_at = now
        held = tuple(sorted(tally.held))
        self.events.append(Event(now, who, What.KILLED, held))
        for number in held:
            job = self.jobs[number]
            self._put_down(job, who)
            job.let_go.append((who, Why.KILLED))
            self._turn(job, Fate.WAITING)
            self._archive_at_limit(job, now)

    # What is known.

    @property
    def finished(self) -> bool:
        return self.done == self.expected

    @property
    def done(self) -> int:
        return sum(self._fates[fate] for fate in DONE)

    def count(self, fate: Fate) -> int:
        return self._fates[fate]

    def at_rest(self, who: str) -> bool:
        """Whether the broker has confirmed all that a consumer said."""
        return not self.tallies[who].unconfirmed

    def sums(self) -> Sums:
        jobs = self.jobs.values()
        reasons = Counter(why for job in jobs for _, why in job.let_go)
        return Sums(
            produced=len(self.jobs),
            accepted=self.count(Fate.ACCEPTED),
            rejected=tuple(job.number for job in jobs if job.fate is Fate.REJECTED),
            archived=self.count(Fate.ARCHIVED),
            left=len(self.jobs) - self.done,
            delivered=sum(job.delivery_count > 0 for job in jobs),
            again=sum(max(job.delivery_count - 1, 0) for job in jobs),
            reasons={why: reasons[why] for why in Why},
            twice=sum(job.accepted > 1 for job in jobs),
            lag=self.lag,
        )

    def complaints(self) -> list[str]:
        """Say what does not add up; nothing, if all does."""
        jobs = self.jobs.values()
        found = list(self._oddities)
        if len(jobs) != self.expected:
            found.append(f"{len(jobs)} jobs were seen, not {self.expected}")
        if left := [job.number for job in jobs if job.fate not in DONE]:
            found.append(f"neither accepted nor rejected: {_listed(left)}")
        if self.lag:
            found.append(f"open by the broker's count: {self.lag}")
        if twice := [job.number for job in jobs if job.accepted > 1]:
            found.append(f"accepted more than once: {_listed(twice)}")
        odd = [job.number for job in jobs if job.fate in DONE and job.unexplained]
        if odd:
            found.append(f"delivered more or less often than let go: {_listed(odd)}")
        return found

    def _explain(self, job: Job, delivery_count: int) -> None:
        """Reckon with what the killed had fetched, and told nobody of."""
        for who, tally in self.tallies.items():
            missing = delivery_count - 1 - len(job.let_go)
            told = (who, Why.KILLED) in job.let_go or (who, Why.AHEAD) in job.let_go
            if tally.killed_at is not None and missing > 0 and not told:
                job.let_go.append((who, Why.AHEAD))

    def _expired(self, job: Job, who: str, now: float) -> None:
        self._put_down(job, who)
        job.let_go.append((who, Why.EXPIRED))
        if job.fate is not Fate.HELD and job.fate not in DONE:
            self._turn(job, Fate.WAITING)
        self._tell(now, who, What.LATE, job)

    def _put_down(self, job: Job, who: str) -> None:
        tally = self.tallies[who]
        if job.number in tally.held:
            tally.held.remove(job.number)
        if job.holder == who:
            job.holder = ""
            if job.fate is Fate.HELD:
                self._turn(job, Fate.WAITING)

    def _archive_at_limit(self, job: Job, now: float) -> None:
        if job.delivery_count >= DELIVERY_LIMIT and job.fate is Fate.WAITING:
            self._turn(job, Fate.ARCHIVED)
            self._tell(now, "", What.ARCHIVED, job)

    def _turn(self, job: Job, fate: Fate) -> None:
        self._fates[job.fate] -= 1
        self._fates[fate] += 1
        job.fate = fate

    def _tell(
        self,
        now: float,
        who: str,
        what: What,
        job: Job,
        whose: str = "",
        why: Why | None = None,
    ) -> None:
        numbers, count = (job.number,), job.delivery_count
        self.events.append(Event(now, who, what, numbers, count, whose, why))


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, sorted(numbers)[:10]))
    more = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
    return f"job{'s' if len(numbers) > 1 else ''} {shown}{more}"
