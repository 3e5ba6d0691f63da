"""Plans for the handlers of sharecons, by the number of a record."""

from collections.abc import Mapping
from typing import Final

__all__ = ["CRASHES", "plan_of"]

CYCLE: Final = 40
USUAL: Final = {
    3: "fail once",
    11: "retry",
    17: "reject",
    23: "fail",
    29: "dead letter",
    31: "release",
}
"""By the number modulo CYCLE."""

REDRIVEN: Final = {**USUAL, 7: "fail until redriven", 23: "fail until redriven"}

RARE: Final = 8000
CRASHES: Final = {212: "exit", 2202: "segfault", 4213: "kill", 6207: "memory"}
"""By the number modulo RARE: each costs a process up to four starts."""

PLANS: Final[Mapping[str, Mapping[int, str]]] = {
    "usual": USUAL,
    "redrive": REDRIVEN,
    "crash": USUAL,
}


def plan_of(number: int, plans: str = "usual") -> str:
    """Return the plan of a record.

    "fail once" and "retry" fail at their first attempt, "fail" at each, "release" is
    released once by a loop, and "reject" and "dead letter" end in this way. "fail until
    redriven" succeeds once it was a dead letter. CRASHES end the process, except
    "memory" if the process survives that it has none left: then the attempt has failed.

    Args:
        plans: which plans the run has: "usual", "redrive" or "crash".
    """
    if plans == "crash" and number % RARE in CRASHES:
        return CRASHES[number % RARE]
    return PLANS[plans].get(number % CYCLE, "succeed")
