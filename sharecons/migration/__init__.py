"""Migration of a consumer group's offsets to a share group, and back.

    async with ShareGroupAdmin(bootstrap_servers="kafka:9092") as admin:
        planned = await migration.plan(admin, "orders", "orders-shared")
        print(planned.twice, planned.missed)
        results = await migration.execute(admin, planned)

A plan changes nothing. It contains, for each partition, the new position of the target,
and how many offsets are then delivered twice or never; see `Move`.

Read `models`, `offset_migration` (the new position of a partition; no I/O), `plan`,
`groups`, `positions`, `execute`.
"""

from sharecons.migration.execute import execute
from sharecons.migration.models import (
    Direction,
    LogBounds,
    Migration,
    MissingPolicy,
    Move,
)
from sharecons.migration.plan import plan

__all__ = [
    "Direction",
    "LogBounds",
    "Migration",
    "MissingPolicy",
    "Move",
    "execute",
    "plan",
]
__dir__ = __all__.copy
