"""The plan of a demo: which consumer fails, which is killed, how long a job takes.

All random decisions depend on the seed, the consumer, the job and the delivery count
only, so that each seed always gives the same decisions.
"""

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

__all__ = ["CONCURRENT_JOBS", "MAX_DELIVERIES", "Decision", "Plan"]

CONCURRENT_JOBS: Final = 3
"""Jobs that one consumer processes at the same time."""

MAX_DELIVERIES: Final = 3
"""Deliveries after which a job is rejected; below the broker's limit of 5."""

FAILURE_RATE: Final = 0.25
"""The share of its jobs that the failing consumer fails to process."""

KILL_AFTER_SHARE: Final = 0.4
"""The share of jobs that are done when one consumer is killed."""

NAMES: Final = ("ada", "bob", "cleo", "dan", "eve", "finn", "gus", "hana")

JOIN_SECONDS: Final = 2.0
"""Seconds until all consumers have jobs; brokers assign partitions after one."""

MAX_JOB_SECONDS: Final = 2.0
"""The maximum average seconds per job; a job must end before its lock expires."""


class Decision(Enum):
    """How a consumer acknowledges a job."""

    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parameters of a demo and the decisions that follow from them.

    Attributes:
        jobs: the number of jobs, which are numbered from 1.
        consumers: the number of consumers.
        seconds: the approximate duration of the demo.
        seed: the seed of all random decisions.
    """

    jobs: int = 240
    consumers: int = 4
    seconds: float = 25.0
    seed: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        others = (
            f"no. {number}" for number in range(len(NAMES) + 1, self.consumers + 1)
        )
        return (*NAMES[: self.consumers], *others)

    @property
    def failing_consumer(self) -> str:
        """The name of the consumer that fails sometimes."""
        return self.names[1 % self.consumers]

    @property
    def killed_consumer(self) -> str | None:
        """The name of the consumer to kill; None if there is only one."""
        return self.names[2 % self.consumers] if self.consumers > 1 else None

    @property
    def kill_after(self) -> int:
        """The number of done jobs after which the consumer is killed."""
        return int(self.jobs * KILL_AFTER_SHARE)

    @property
    def poison_job(self) -> int:
        """The number of the job that fails in every consumer."""
        early = max(1, int(self.jobs * 0.2)), max(1, int(self.jobs * 0.35))
        return self._random("poison").randint(*early)

    @property
    def produce_seconds(self) -> float:
        """Seconds in which all jobs are produced."""
        return self.seconds * 0.45

    def decide(self, consumer: str, job: int, delivery_count: int) -> Decision:
        """Return how a consumer acknowledges a job after processing it."""
        if job == self.poison_job:
            return (
                Decision.REJECT
                if delivery_count >= MAX_DELIVERIES
                else Decision.RELEASE
            )
        fails = self._random(consumer, job, delivery_count).random() < FAILURE_RATE
        if (
            consumer == self.failing_consumer
            and delivery_count < MAX_DELIVERIES
            and fails
        ):
            return Decision.RELEASE
        return Decision.ACCEPT

    def duration(self, consumer: str, job: int, delivery_count: int) -> float:
        """Return the seconds that a consumer takes for a job."""
        chance = self._random("duration", consumer, job, delivery_count)
        return self._mean_duration * chance.uniform(0.5, 1.5)

    @property
    def _mean_duration(self) -> float:
        average_alive = 1 / (
            KILL_AFTER_SHARE / self.consumers + (1 - KILL_AFTER_SHARE) / self._survivors
        )
        concurrency = (
            CONCURRENT_JOBS * average_alive * 0.9
        )  # consumers are idle sometimes
        deliveries_per_job = 1.1  # some jobs are redelivered
        seconds = max(self.seconds - JOIN_SECONDS, self.seconds * 0.3)
        return min(
            concurrency * seconds / (self.jobs * deliveries_per_job), MAX_JOB_SECONDS
        )

    @property
    def _survivors(self) -> int:
        return self.consumers - (self.killed_consumer is not None)

    def _random(self, *key: object) -> Random:
        return Random(":".join(map(str, (self.seed, *key))))
