"""Counts of archived offsets over several collections."""

from sharecons._record import TopicPartition
from sharecons.exporter.archived import ArchivedCounts
from sharecons.exporter.snapshot import Snapshot
from sharecons.group_state.group_states import GroupState, PartitionState
from sharecons.group_state.offset_states import OffsetRange, OffsetStatus

KEY = TopicPartition("jobs", 0)
PLACE = "workers", KEY


def snapshot(*ranges, reached=True, status=OffsetStatus.ARCHIVED, known=True):
    if not reached:
        return Snapshot(at=0.0, duration=0.0, reached=False)
    offset_ranges = tuple(
        OffsetRange(first_offset=first, last_offset=last, status=status)
        for first, last in ranges
    )
    ranges = offset_ranges if known else ()
    one = PartitionState(start_offset=0, ranges=ranges, has_state=known)
    group = GroupState(group=None, partitions={KEY: one})
    return Snapshot(at=0.0, duration=0.0, groups={"workers": group})


def counted(*each):
    counts = ArchivedCounts()
    for one in each:
        counts = counts.after(one)
    return counts.totals


def test_an_offset_is_counted_once_while_it_is_seen():
    one = snapshot((1, 3), (6, 6))

    assert {PLACE: 4} == counted(one, one, one)


def test_only_new_offsets_of_a_grown_range_are_counted():
    assert {PLACE: 11} == counted(snapshot((3, 5)), snapshot((0, 5), (7, 11)))


def test_an_archiving_offset_is_not_counted_again_when_it_is_archived():
    archiving = snapshot((1, 3), status=OffsetStatus.ARCHIVING)

    assert {PLACE: 3} == counted(archiving, snapshot((1, 3)))


def test_offsets_that_the_start_passed_stay_counted():
    assert {PLACE: 3} == counted(snapshot((1, 3)), snapshot())


def test_failed_snapshot_changes_no_count():
    one = snapshot((1, 3))

    assert {PLACE: 3} == counted(one, snapshot(reached=False), one)
    assert {PLACE: 3} == counted(one, snapshot(known=False), one)


def test_other_statuses_are_not_counted():
    assert {PLACE: 0} == counted(snapshot((1, 3), status=OffsetStatus.UNKNOWN))
