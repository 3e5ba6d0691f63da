"""What is to happen in a demo: who fails at what, who is killed, how long a job takes.

Chance comes from the seed alone: a job that is delivered to the same consumer for
the same time always fares the same.
"""

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

__all__ = ["HANDS", "TRIES", "Plan", "Verdict"]

HANDS: Final = 3
"""Jobs that one consumer works at the same time."""

TRIES: Final = 3
"""DeliveryQueue of a job until it is rejected; below the broker's own limit of 5."""

FAILURES: Final = 0.25
"""How many of its jobs the clumsy consumer fails at."""

KILL_AT: Final = 0.4
"""How much is done when one consumer is killed."""

NAMES: Final = ("ada", "bob", "cleo", "dan", "eve", "finn", "gus", "hana")

JOINING: Final = 2.0
"""Seconds until everybody has something to do: a broker assigns after one."""

LONGEST: Final = 2.0
"""Seconds for a job on average, at most: none may outlast its lock."""


class Verdict(Enum):
    """What a consumer says of a job."""

    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The demo as it is meant to go.

    Attributes:
        jobs: how many there are, numbered from 1.
        consumers: how many work on them.
        seconds: how long it is to take, roughly.
        seed: of all that is left to chance.
    """

    jobs: int = 240
    consumers: int = 4
    seconds: float = 25.0
    seed: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        more = (f"no. {number}" for number in range(len(NAMES) + 1, self.consumers + 1))
        return (*NAMES[: self.consumers], *more)

    @property
    def clumsy(self) -> str:
        """Who fails now and then."""
        return self.names[1 % self.consumers]

    @property
    def victim(self) -> str | None:
        """Who is killed; nobody, if it is the only one."""
        return self.names[2 % self.consumers] if self.consumers > 1 else None

    @property
    def kill_after(self) -> int:
        """How many jobs are done when the victim is killed."""
        return int(self.jobs * KILL_AT)

    @property
    def poison(self) -> int:
        """The job that everybody fails at."""
        early = max(1, int(self.jobs * 0.2)), max(1, int(self.jobs * 0.35))
        return self._chance("poison").randint(*early)

    @property
    def writing(self) -> float:
        """Seconds in which the jobs are written."""
        return self.seconds * 0.45

    def verdict(self, who: str, job: int, delivery_count: int) -> Verdict:
        """What a consumer says of a job when it has tried."""
        if job == self.poison:
            return Verdict.REJECT if delivery_count >= TRIES else Verdict.RELEASE
        fails = self._chance(who, job, delivery_count).random() < FAILURES
        if who == self.clumsy and delivery_count < TRIES and fails:
            return Verdict.RELEASE
        return Verdict.ACCEPT

    def duration(self, who: str, job: int, delivery_count: int) -> float:
        """Seconds that a consumer works on a job."""
        chance = self._chance("duration", who, job, delivery_count)
        return self._mean * chance.uniform(0.5, 1.5)

    @property
    def _mean(self) -> float:
        alive = 1 / (KILL_AT / self.consumers + (1 - KILL_AT) / self._survivors)
        hands = HANDS * alive * 0.9  # none is busy all the time
        again = 1.1  # some are worked twice
        seconds = max(self.seconds - JOINING, self.seconds * 0.3)
        return min(hands * seconds / (self.jobs * again), LONGEST)

    @property
    def _survivors(self) -> int:
        return self.consumers - (self.victim is not None)

    def _chance(self, *what: object) -> Random:
        return Random(":".join(map(str, (self.seed, *what))))
