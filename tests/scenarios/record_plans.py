"""Plans for the handlers of the worker's scenarios, by the number of a record."""

from typing import Final

__all__ = ["NEVER_DONE", "plan_of"]

PLANS: Final = {
    1: "fail once",
    4: "wait",
    5: "fail",
    7: "dead letter",
    11: "wait",
    13: "fail once",
}
"""By the number modulo CYCLE; others succeed at their first attempt."""

CYCLE: Final = 20

NEVER_DONE: Final = frozenset(["fail", "dead letter"])
"""Plans of records that become dead letters."""


def plan_of(number: int) -> str:
    """Return the plan of a record.

    "fail once" fails at its first attempt, "wait" raises `Retry` at its first attempt,
    "fail" fails at each attempt, and "dead letter" raises `DeadLetter`.
    """
    return PLANS.get(number % CYCLE, "succeed")
