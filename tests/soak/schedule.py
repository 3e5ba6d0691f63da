"""The kills of a run. Pure."""

from dataclasses import dataclass
from typing import Final

__all__ = ["ROLES", "Kill", "plan_kills", "warm_up"]

ROLES: Final = ("leader", "coordinator", "controller", "member")
"""The killed process: a broker, or the second process of each group."""

PERIOD: Final = 600.0
"""Seconds between two kills."""

SHORT: Final = 5
"""A run shorter than this number of periods has that many, so that all roles occur."""

DOWN: Final = 20.0
"""Seconds until a killed process starts again."""

WARM_UP: Final = 3600.0
"""Seconds in which caches, histograms and the allocator reach their sizes."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill.

    Attributes:
        at: seconds after the begin of the run.
        role: one of ROLES.
        turn: how many kills of this role come before it; chooses the partition or
            the group.
        down: seconds until the killed process starts again.
    """

    at: float
    role: str
    turn: int
    down: float


def plan_kills(seconds: float) -> list[Kill]:
    """Return the kills of a run, in the order of their times.

    The first period and the half of one at the end have none.
    """
    period = min(PERIOD, seconds / SHORT)
    count = round(seconds / period - 1.0)
    return [
        Kill(
            (index + 1) * period,
            ROLES[index % len(ROLES)],
            index // len(ROLES),
            min(DOWN, period / 4),
        )
        for index in range(count)
    ]


def warm_up(seconds: float) -> float:
    """Return the seconds of a run before its slopes begin: an hour, or an eighth."""
    return min(WARM_UP, seconds / 8)
