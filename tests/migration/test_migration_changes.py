"""Changes of positions between a migration plan and its execution."""

from sharecons._record import TopicPartition
from sharecons.migration.models import (
    Direction,
    GroupPosition,
    LogBounds,
    Migration,
)
from sharecons.migration.offset_migration import changed_since, plan_move

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def plan(offsets, errors=()):
    """Return a plan to move a consumer group with these offsets to a share group."""
    log = LogBounds(start=0, end=100)
    return Migration(
        source="old",
        target="new",
        direction=Direction.TO_SHARE_GROUP,
        moves={
            partition: plan_move(
                GroupPosition(offset=offset), None, log, Direction.TO_SHARE_GROUP
            )
            for partition, offset in offsets.items()
        },
        errors=dict(errors),
    )


def test_unreadable_partition_does_not_hide_the_change_of_the_next():
    unreadable = ValueError("no leader")

    errors = changed_since(plan({P0: 5, P1: 5}), plan({P1: 6}, {P0: unreadable}))

    assert unreadable is errors[P0]
    assert "the source was at 5" in str(errors[P1])
