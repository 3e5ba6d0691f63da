"""Plans for the handlers of sharecons, by the number of a record."""

from typing import Final

__all__ = ["plan_of"]

CYCLE: Final = 40
PLANS: Final = {
    3: "fail once",
    11: "retry",
    17: "reject",
    23: "fail",
    29: "dead letter",
    31: "release",
}
"""By the number modulo CYCLE."""


def plan_of(number: int) -> str:
    """Return the plan of a record.

    "fail once" and "retry" fail at their first attempt, "fail" at each, "release" is
    released once by a loop, and "reject" and "dead letter" end in this way.
    """
    return PLANS.get(number % CYCLE, "succeed")
