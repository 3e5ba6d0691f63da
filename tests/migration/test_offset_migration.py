"""Conversion of positions, and which records are delivered twice or never."""

import pytest

from sharecons._record import TopicPartition
from sharecons.admin import DeliveryState, StateBatch
from sharecons.migration.models import (
    Direction,
    GroupPosition,
    LogBounds,
    Migration,
    MissingPolicy,
    SettledAbove,
)
from sharecons.migration.offset_migration import changed_since, plan_move

AVAILABLE = DeliveryState.AVAILABLE
ACKNOWLEDGED = DeliveryState.ACKNOWLEDGED
ARCHIVED = DeliveryState.ARCHIVED
LOG = LogBounds(start=0, end=100)
ORDERS = TopicPartition("orders", 0)


def batch(first, last, state, deliveries=1):
    return StateBatch(
        first_offset=first, last_offset=last, state=state, delivery_count=deliveries
    )


def share_position(offset, *batches):
    return GroupPosition(offset=offset, above=SettledAbove(batches=batches))


def to_share(source, target=None, log=LOG, **options):
    return plan_move(source, target, log, Direction.TO_SHARE_GROUP, **options)


def to_consumer(source, target=None, log=LOG, **options):
    return plan_move(source, target, log, Direction.TO_CONSUMER_GROUP, **options)


def notes_of(moved):
    return " / ".join(moved.notes)


class TestToShareGroup:
    def test_the_committed_offset_becomes_the_start_offset(self):
        moved = to_share(GroupPosition(offset=40))

        assert (40, 0, 0, 0) == (
            moved.offset,
            moved.twice,
            moved.missed,
            moved.rewound,
        )
        assert not moved.notes

    def test_records_removed_before_they_were_read_are_missed(self):
        moved = to_share(GroupPosition(offset=10), log=LogBounds(start=25, end=100))

        assert (25, 15, 0) == (moved.offset, moved.missed, moved.twice)
        assert "15 of the 15 offsets between were removed undelivered" in notes_of(
            moved
        )

    def test_position_beyond_the_end_becomes_the_end_with_unknown_missed(self):
        moved = to_share(GroupPosition(offset=120))

        assert (100, None) == (moved.offset, moved.missed)
        assert "beyond the log's end 100" in notes_of(moved)

    def test_target_that_was_further_is_rewound(self):
        moved = to_share(GroupPosition(offset=40), share_position(70))

        assert (40, 30, 0) == (moved.offset, moved.rewound, moved.twice)
        assert (
            "the target was at 70: 30 offsets that it settled are delivered again"
            in notes_of(moved)
        )

    def test_moved_target_delivers_settled_records_above_again(self):
        target = share_position(
            30, batch(35, 44, ACKNOWLEDGED), batch(45, 49, ARCHIVED)
        )

        assert 10 == to_share(GroupPosition(offset=40), target).rewound
        assert 10 + 15 == to_share(GroupPosition(offset=20), target).rewound
        assert 0 == to_share(GroupPosition(offset=30), target).rewound

    def test_rewound_is_computed_from_a_count_without_batches(self):
        target = GroupPosition(offset=30, above=SettledAbove(batches=None, count=15))
        moved = to_share(GroupPosition(offset=40), target)

        assert moved.rewound is None
        assert "offsets that it settled above are delivered again" in notes_of(moved)
        assert 25 == to_share(GroupPosition(offset=20), target).rewound

    def test_target_at_the_position_needs_no_move(self):
        assert not to_share(GroupPosition(offset=40), share_position(40)).is_needed
        assert to_share(GroupPosition(offset=40), share_position(39)).is_needed
        assert to_share(GroupPosition(offset=0)).is_needed


class TestWithoutAPosition:
    def test_reset_latest_misses_all_existing_records(self):
        moved = to_share(None, log=LogBounds(start=20, end=100), reset="latest")

        assert (None, 80) == (moved.offset, moved.missed)
        assert "share.auto.offset.reset=latest" in notes_of(moved)

    def test_reset_earliest_misses_nothing(self):
        assert 0 == to_share(None, reset="earliest").missed

    @pytest.mark.parametrize("reset", [None, "by_duration:PT1H"])
    def test_missed_is_unknown_for_other_resets(self, reset):
        assert to_share(None, reset=reset).missed is None

    def test_target_with_a_position_keeps_it(self):
        moved = to_share(None, share_position(30), reset="latest")

        assert (None, None, 0) == (moved.offset, moved.missed, moved.twice)
        assert "the target stays at 30" in notes_of(moved)

    def test_missing_policy_earliest_starts_at_the_log_start(self):
        log = LogBounds(start=20, end=100)
        moved = to_share(None, log=log, missing=MissingPolicy.EARLIEST, reset="latest")

        assert (20, 0) == (moved.offset, moved.missed)

    def test_missing_policy_latest_starts_at_the_log_end(self):
        log = LogBounds(start=20, end=100)
        moved = to_consumer(
            None, GroupPosition(offset=90), log=log, missing=MissingPolicy.LATEST
        )

        assert (100, 80) == (moved.offset, moved.missed)
        assert "the target was at 90" in notes_of(moved)

    def test_consumer_group_starts_by_its_own_reset(self):
        moved = to_consumer(None)

        assert (None, None) == (moved.offset, moved.missed)
        assert "auto.offset.reset" in notes_of(moved)

    def test_empty_partition_misses_nothing(self):
        empty = LogBounds(start=7, end=7)

        assert 0 == to_consumer(None, log=empty).missed
        assert 0 == to_share(None, log=empty, reset="latest").missed


class TestToConsumerGroup:
    def test_records_settled_above_the_start_offset_are_delivered_twice(self):
        moved = to_consumer(
            share_position(
                40,
                batch(40, 44, AVAILABLE),
                batch(45, 54, ACKNOWLEDGED),
                batch(55, 56, ARCHIVED, 5),
                batch(60, 60, ACKNOWLEDGED),
            )
        )

        assert (40, 13, 11, 2, 0) == (
            moved.offset,
            moved.twice,
            moved.acknowledged,
            moved.archived,
            moved.missed,
        )
        assert "13 offsets above it are settled and delivered twice" in notes_of(moved)
        assert "2 of these are archived" in notes_of(moved)
        assert (
            "5 offsets were delivered and not settled: they are delivered again"
            in notes_of(moved)
        )

    @pytest.mark.parametrize(
        ("batches", "offset", "twice"),
        [
            ([(40, 59, ACKNOWLEDGED), (60, 61, ARCHIVED)], 62, 0),
            ([(40, 59, ACKNOWLEDGED), (63, 64, ACKNOWLEDGED)], 60, 2),
            ([(40, 59, ACKNOWLEDGED), (60, 60, AVAILABLE)], 60, 0),
            ([(40, 99, ACKNOWLEDGED)], 100, 0),
        ],
    )
    def test_settled_records_at_the_start_offset_are_passed(
        self, batches, offset, twice
    ):
        """Brokers store the start offset with the next acknowledgement only."""
        moved = to_consumer(share_position(40, *(batch(*each) for each in batches)))

        assert (40, offset, twice, 0) == (
            moved.source_offset,
            moved.offset,
            moved.twice,
            moved.missed,
        )

    def test_position_is_the_end_of_the_log_if_the_lag_is_zero(self):
        position = GroupPosition(offset=40, above=SettledAbove(batches=None, count=60))
        moved = to_consumer(position)

        assert (100, 0, 0) == (moved.offset, moved.twice, moved.missed)

    def test_undelivered_records_are_not_in_the_notes(self):
        assert () == to_consumer(share_position(40, batch(40, 49, AVAILABLE, 0))).notes

    def test_removed_settled_records_are_not_delivered_twice(self):
        moved = to_consumer(
            share_position(10, batch(12, 29, ACKNOWLEDGED), batch(30, 30, ARCHIVED)),
            log=LogBounds(start=25, end=100),
        )

        assert (25, 5, 1) == (moved.offset, moved.acknowledged, moved.archived)
        # 10 and 11 were never settled; 12 to 24 were.
        assert 2 == moved.missed

    def test_twice_is_computed_from_the_lag_without_state(self):
        position = GroupPosition(offset=40, above=SettledAbove(batches=None, count=13))
        moved = to_consumer(position)

        assert (13, None, None) == (moved.twice, moved.acknowledged, moved.archived)

    def test_twice_is_unknown_from_the_lag_if_records_were_removed(self):
        position = GroupPosition(offset=10, above=SettledAbove(batches=None, count=15))
        moved = to_consumer(position, log=LogBounds(start=25, end=100))

        assert (None, None) == (moved.twice, moved.missed)
        assert "an unknown number of the 15 offsets" in notes_of(moved)

    def test_twice_is_unknown_without_state_and_lag(self):
        position = GroupPosition(offset=40, above=SettledAbove(batches=None))
        moved = to_consumer(position)

        assert moved.twice is None
        assert "unknown" in notes_of(moved)
        assert "CLUSTER_ACTION" in notes_of(moved)


def planned(*moves, errors=None):
    return Migration(
        source="a",
        target="b",
        direction=Direction.TO_SHARE_GROUP,
        moves={TopicPartition("orders", n): each for n, each in enumerate(moves)},
        errors=errors or {},
    )


class TestPlan:
    def test_sums_are_of_all_partitions(self):
        one = to_consumer(share_position(40, batch(41, 43, ACKNOWLEDGED)))
        plan = planned(one, one, to_consumer(None, log=LogBounds(start=0, end=0)))

        assert (6, 0) == (plan.twice, plan.missed)

    def test_a_sum_with_an_unknown_number_is_unknown(self):
        unknown = to_consumer(GroupPosition(offset=4, above=SettledAbove(batches=None)))

        assert planned(to_consumer(share_position(1)), unknown).twice is None

    def test_only_partitions_with_a_new_offset_are_moved(self):
        plan = planned(
            to_share(GroupPosition(offset=5)),
            to_share(GroupPosition(offset=6), share_position(6)),
            to_share(None),
        )

        assert {ORDERS: 5} == plan.offsets

    def test_changed_source_is_an_error(self):
        old, new = (
            planned(to_share(GroupPosition(offset=5))),
            planned(to_share(GroupPosition(offset=6))),
        )
        (error,) = changed_since(old, new).values()

        assert "the source was at 5 when the plan was made, and is at 6 now" in str(
            error
        )

    def test_changed_target_is_an_error(self):
        old = planned(to_share(GroupPosition(offset=5)))
        new = planned(to_share(GroupPosition(offset=5), share_position(9)))
        (error,) = changed_since(old, new).values()

        assert (
            "the target was without a position when the plan was made, and is at 9 now"
            in str(error)
        )

    def test_target_at_the_new_offset_is_no_change(self):
        old = planned(to_share(GroupPosition(offset=5)))
        new = planned(to_share(GroupPosition(offset=5), share_position(5)))

        assert {} == changed_since(old, new)

    def test_partition_that_became_unreadable_is_an_error(self):
        old = planned(to_share(GroupPosition(offset=5)))
        new = planned(errors={ORDERS: ValueError("gone")})

        assert ["gone"] == [str(error) for error in changed_since(old, new).values()]
