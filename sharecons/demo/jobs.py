"""The state of each job, as the workers report it, and the check at the end."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

__all__ = ["Event", "Job", "Jobs", "State", "WorkerStats"]


class State(Enum):
    """The state of a job."""

    DONE = "done"
    DEAD = "dead letter"
    PROCESSING = "in progress"
    WAITING = "waiting"


class Event(NamedTuple):
    """An event that the views show."""

    seconds: float
    who: str
    what: str
    colour: str


@dataclass(slots=True)
class Job:
    """One job.

    Attributes:
        attempt, delivery: the numbers of the last attempt and of the last delivery.
        times_done: how often the broker confirmed that it was done.
        reason: why it became a dead letter; empty if it did not.
    """

    state: State = State.WAITING
    attempt: int = 0
    delivery: int = 0
    times_done: int = 0
    reason: str = ""


@dataclass(slots=True)
class WorkerStats:
    """The counts of one worker, and the numbers of its jobs."""

    jobs: list[int] = field(default_factory=list)
    failed: int = 0
    redelivered: int = 0
    done: int = 0
    failed_at: float = -60.0
    is_killed: bool = False


class Jobs:
    """All jobs by number, the workers by name, and the events so far.

    Attributes:
        lag: how many jobs the broker counts as unfinished at the end; None if unknown.
    """

    def __init__(self, total: int, workers: Iterable[str]) -> None:
        self.total = total
        self.by_number = {number: Job() for number in range(1, total + 1)}
        self.workers = {name: WorkerStats() for name in workers}
        self.events: list[Event] = []
        self.lag: int | None = None

    def add_event(self, now: float, who: str, what: str, colour: str) -> None:
        self.events.append(Event(now, who, what, colour))

    def on_started(
        self, worker: str, now: float, number: int, attempt: int, delivery: int
    ) -> None:
        job, stats = self.by_number[number], self.workers[worker]
        if delivery > max(job.delivery, 1):
            stats.redelivered += 1
            what = f"received job {number} again, delivery {delivery}"
            self.add_event(now, worker, what, "cyan")
        self._end(number, State.PROCESSING)
        stats.jobs.append(number)
        job.attempt, job.delivery = attempt, delivery

    def on_failed(self, worker: str, now: float, number: int, error: str) -> None:
        stats = self.workers[worker]
        stats.failed += 1
        stats.failed_at = now
        attempt = self.by_number[number].attempt
        what = f"failed in job {number}, attempt {attempt}: {error}"
        self.add_event(now, worker, what, "yellow")

    def on_done(self, worker: str, now: float, number: int) -> None:
        job = self.by_number[number]
        job.times_done += 1
        self.workers[worker].done += 1
        self._end(number, State.DONE)
        if job.attempt > 1:
            what = f"finished job {number} in attempt {job.attempt}"
            self.add_event(now, worker, what, "green")

    def on_dead(self, worker: str, now: float, number: int, reason: str) -> None:
        self.by_number[number].reason = reason
        self._end(number, State.DEAD)
        what = f"wrote job {number} to the dead letters: {reason}"
        self.add_event(now, worker, what, "magenta")

    def on_lost(self, worker: str, now: float, number: int, reason: str) -> None:
        """Record that the broker delivers a job again, to any worker."""
        self._end(number, State.WAITING)
        self.add_event(now, worker, f"lost job {number}: {reason}", "red")

    def on_killed(self, worker: str, now: float) -> None:
        """Record that a process was killed: the broker delivers its jobs again."""
        stats = self.workers[worker]
        stats.is_killed = True
        what = f"was killed while it had jobs: {_numbers(stats.jobs)}"
        self.add_event(now, worker, what, "bold red")
        for number in list(stats.jobs):
            self._end(number, State.WAITING)

    def on_restarted(self, worker: str, now: float) -> None:
        self.workers[worker].is_killed = False
        self.add_event(now, worker, "was started again", "green")

    def on_redriven(self, now: float) -> None:
        """Record that the dead letters are jobs in the topic again."""
        for number in self.dead:
            self.by_number[number].state = State.WAITING
        what = f"redrove the dead letters: {_numbers(self.dead)}"
        self.add_event(now, "you", what, "magenta")

    @property
    def is_busy(self) -> bool:
        """True while a job is neither done nor a dead letter."""
        count = self.count()
        return count[State.WAITING] + count[State.PROCESSING] > 0

    def count(self) -> Counter[State]:
        return Counter(job.state for job in self.by_number.values())

    @property
    def dead(self) -> dict[int, str]:
        """The reasons of all jobs that became dead letters, by number."""
        return {n: job.reason for n, job in self.by_number.items() if job.reason}

    def summary(self) -> list[str]:
        workers, done = self.workers.values(), self.count()[State.DONE]
        failed = sum(each.failed for each in workers)
        redelivered = sum(each.redelivered for each in workers)
        reasons = (f"job {number}: {reason}" for number, reason in self.dead.items())
        return [
            f"jobs          {self.total:>5}  {done} done",
            f"failures      {failed:>5}  attempts failed, and others followed",
            f"redelivered   {redelivered:>5}  jobs, which the killed worker had",
            f"dead letters  {len(self.dead):>5}  {'; '.join(reasons)}",
            f"lag           {self.lag!s:>5}  jobs are unfinished at the broker",
        ]

    def problems(self, letters: Mapping[int, str]) -> list[str]:
        """Return a line for each fault; an empty list if the check passes.

        Args:
            letters: the reasons in the dead-letter topic, by the number of the job.
        """
        times = {number: job.times_done for number, job in self.by_number.items()}
        found = {
            "not done": [n for n in times if not times[n]],
            "done more than once": [n for n in times if times[n] > 1],
            "dead letter missing, without a report, or with another reason": {
                number for number, _ in self.dead.items() ^ letters.items()
            },
        }
        lines = [f"{what}: {_numbers(each)}" for what, each in found.items() if each]
        return lines + ([f"lag at the broker: {self.lag}"] if self.lag else [])

    def _end(self, number: int, state: State) -> None:
        for stats in self.workers.values():
            if number in stats.jobs:
                stats.jobs.remove(number)
        self.by_number[number].state = state


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"
