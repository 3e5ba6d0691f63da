"""Moving over: a consumer group's place becomes a share group's, and the way back.

    async with ShareGroupAdmin("localhost:9092") as admin:
        planned = await migration.plan(admin, "orders", "orders-shared")
        print(planned.twice, planned.missed)
        results = await migration.carry_out(admin, planned)

A plan changes nothing. It says for each partition where the target is to begin, and
what is then delivered twice or not at all; see `Move`.
"""

from sharecons.migration.execute import carry_out
from sharecons.migration.plan import plan
from sharecons.protocol.migration.models import (
    Direction,
    LogBounds,
    Migration,
    MissingPolicy,
    Move,
)

__all__ = [
    "Direction",
    "LogBounds",
    "Migration",
    "MissingPolicy",
    "Move",
    "carry_out",
    "plan",
]
