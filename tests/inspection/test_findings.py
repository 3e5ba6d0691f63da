"""Findings about partitions, without a broker."""

from dataclasses import replace

import pytest

from sharecons.group_state.group_facts import GroupFacts
from sharecons.group_state.group_states import PartitionState
from sharecons.group_state.offset_states import (
    OldestRecord,
    offset_ranges_of,
)
from sharecons.inspection.diagnosis.findings import (
    Reason,
    Severity,
    findings_of,
    may_stand_still,
)
from sharecons.inspection.diagnosis.formats import format_duration
from sharecons.protocol.admin.models import (
    DeliveryState,
    SharePartitionState,
    StateBatch,
)

AVAILABLE = DeliveryState.AVAILABLE
ACKNOWLEDGED = DeliveryState.ACKNOWLEDGED
ARCHIVED = DeliveryState.ARCHIVED
ARCHIVING = DeliveryState.ARCHIVING
NOW = 1_000_000.0
LOOK = (
    "`sharecons groups members` shows where the members run; their /readyz and logs "
    "say what holds records"
)
STOPPED_LEADER = (
    "If nothing does, the leader of the partition stands still: all 2,050 offsets of "
    "the window are settled, and Kafka (4.3 and 4.4) can stop there after a leader has "
    "changed. Move the leader again, or stop all members of the group and start them"
)
GROUP = GroupFacts(members=2, record_locks=2000, delivery_limit=5, lock_duration=30.0)


def inspection(start, *batches, end, members=("ann",), age=None, log_start=0):
    state = SharePartitionState(
        start_offset=start,
        state_epoch=0,
        batches=tuple(
            StateBatch(first_offset=a, last_offset=b, state=s, delivery_count=c)
            for a, b, s, c in batches
        ),
    )
    ranges = offset_ranges_of(state, log_start, end)
    oldest = None
    if age is not None:
        oldest = OldestRecord(offset=start, timestamp=round((NOW - age) * 1000))
    return PartitionState(
        start_offset=start,
        log_start_offset=log_start,
        end_offset=end,
        ranges=ranges,
        oldest=oldest,
        members=members,
    )


def found(partition, group=GROUP, **more):
    return findings_of(partition, group, now=NOW, **more)


def reasons(*arguments, **more):
    return [finding.reason for finding in found(*arguments, **more)]


def test_window_full_behind_one_record_is_stalled_with_offset_and_age():
    partition = inspection(100, (101, 2099, ACKNOWLEDGED, 1), end=9000, age=7380)
    (finding,) = found(partition)

    assert (Reason.WINDOW_FULL, Severity.STALLED) == (finding.reason, finding.severity)
    assert (
        "the window is full behind one record: 1,999 of 2,000 offsets are settled and "
        "wait for offset 100, 2 h 3 min old; nothing after offset 2099 is delivered "
        f"until then. `sharecons peek` shows the record; {LOOK}"
    ) == finding.text


def test_window_full_behind_several_records_has_their_number():
    partition = inspection(
        0, (0, 499, AVAILABLE, 1), (500, 2005, ACKNOWLEDGED, 1), end=9000
    )

    assert "full behind 500 records" in found(partition)[0].text


def test_full_window_of_settled_offsets_is_not_stalled():
    partition = inspection(0, (0, 2000, ACKNOWLEDGED, 1), end=2001)

    assert [Reason.SETTLED] == reasons(partition)


def test_nearly_full_window_is_a_warning():
    partition = inspection(0, (1, 1700, ACKNOWLEDGED, 1), end=9000)

    assert [Reason.WINDOW_NEARLY_FULL] == reasons(partition)


def test_open_record_before_settled_ones_is_a_note_if_the_window_has_space():
    partition = inspection(0, (1, 99, ACKNOWLEDGED, 1), end=100, age=5)
    (finding,) = found(partition)

    assert (Reason.HELD_UP, Severity.NOTE) == (finding.reason, finding.severity)
    assert "waits for offset 0, 5 s old, available or locked" in finding.text


def test_group_without_members_is_stalled_if_records_are_available():
    without_members = GroupFacts(members=0, record_locks=2000)

    assert [Reason.NO_MEMBERS] == reasons(
        inspection(0, end=10, members=()), without_members
    )
    assert [Reason.SETTLED] == reasons(
        inspection(10, end=10, members=(), log_start=10), without_members
    )


def test_unassigned_partition_with_records_is_reported():
    assert [Reason.UNASSIGNED] == reasons(inspection(0, end=10, members=()))


@pytest.mark.parametrize(("count", "near"), [(3, False), (4, True), (5, True)])
def test_delivery_limit_is_reported_when_one_delivery_is_left(count, near):
    partition = inspection(0, (0, 2, AVAILABLE, count), end=3)

    assert near == (Reason.DELIVERY_LIMIT in reasons(partition))


def test_archived_records_at_the_delivery_limit_are_a_warning():
    (finding,) = found(inspection(0, (0, 2, ARCHIVED, 5), (3, 3, ARCHIVING, 5), end=4))

    assert (Reason.ARCHIVED, Severity.WARNING) == (finding.reason, finding.severity)
    assert (
        "4 offsets archived at the delivery limit of 5: not delivered again"
        == finding.text
    )


def test_records_archived_before_the_delivery_limit_are_a_note():
    (finding,) = found(
        inspection(0, (0, 0, ARCHIVED, 2), (1, 1, ACKNOWLEDGED, 1), end=2)
    )

    assert (Reason.ARCHIVED, Severity.NOTE) == (finding.reason, finding.severity)
    assert (
        "1 offset archived before the delivery limit: rejected, or markers of "
        "transactions; not delivered again; nothing else waits" == finding.text
    )


def test_archived_records_before_and_at_the_limit_are_counted_separately():
    partition = inspection(0, (0, 1, ARCHIVED, 1), (2, 4, ARCHIVED, 5), end=5)

    assert [
        (Severity.WARNING, "3 offsets"),
        (Severity.NOTE, "2 offsets"),
    ] == [(each.severity, each.text[:9]) for each in found(partition)]


def test_archived_records_with_an_unknown_limit_are_a_note():
    (finding,) = found(inspection(0, (0, 1, ARCHIVED, 5), end=2), GroupFacts(members=1))

    assert Severity.NOTE is finding.severity
    assert (
        "2 offsets archived: rejected, or at the delivery limit, or markers of "
        "transactions; not delivered again; nothing else waits" == finding.text
    )


def test_possible_locks_are_a_note():
    (finding,) = found(inspection(0, end=9000))

    assert (Reason.MAY_BE_LOCKED, Severity.NOTE) == (finding.reason, finding.severity)
    assert "its 1 member might hold up to 2,000 locks, or have not fetched yet" in (
        finding.text
    )


def test_state_unchanged_for_longer_than_a_lock_is_reported():
    partition = inspection(0, end=10)

    assert [Reason.WORKING] == reasons(partition, unchanged_for=30.0)
    assert [Reason.NO_PROGRESS] == reasons(partition, unchanged_for=31.0)


def test_full_window_of_settled_records_can_be_a_leader_that_stands_still():
    """A leader that loads a full window does not always move its start."""
    partition = inspection(0, (0, 2049, ACKNOWLEDGED, 1), end=9000)
    below = inspection(0, (0, 1998, ACKNOWLEDGED, 1), end=9000)
    (finding,) = found(partition, unchanged_for=31.0)
    (other,) = found(below, unchanged_for=31.0)

    assert [Reason.WORKING] == reasons(partition, unchanged_for=30.0)
    assert Reason.NO_PROGRESS is finding.reason
    assert finding.text.endswith(f"{LOOK}. {STOPPED_LEADER}")
    assert other.text.endswith(LOOK)


def test_settled_partition_without_changes_is_settled():
    partition = inspection(10, end=10, log_start=10)

    assert [Reason.SETTLED] == reasons(partition, unchanged_for=1e6)


def test_removed_unsettled_records_are_reported():
    partition = inspection(0, (0, 9, AVAILABLE, 1), end=20, log_start=5)

    assert Reason.REMOVED in reasons(partition)
    assert "removed 5 offsets" in found(partition)[0].text


def test_partition_without_a_start_offset_has_not_begun():
    assert [Reason.NOT_BEGUN] == reasons(PartitionState(start_offset=None))


def test_unknown_log_end_is_reported():
    assert Reason.UNSEEN_LOG in reasons(PartitionState(start_offset=3))


def test_window_is_not_checked_without_a_known_limit():
    partition = inspection(0, (1, 5000, ACKNOWLEDGED, 1), end=9000)

    assert [Reason.HELD_UP] == reasons(partition, GroupFacts(members=1))


def test_findings_are_sorted_by_severity():
    partition = inspection(
        0, (0, 0, AVAILABLE, 4), (1, 2000, ACKNOWLEDGED, 1), end=9000
    )
    severities = [finding.severity for finding in found(partition)]

    assert [Severity.STALLED, Severity.WARNING] == severities


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3601, "1 h"),
        (90061, "1 d 1 h"),
        (86400 + 60, "1 d"),
        (-3, "0 s"),
    ],
)
def test_durations_have_at_most_two_units(seconds, text):
    assert text == format_duration(seconds)


def test_record_without_timestamp_is_of_unknown_age():
    partition = inspection(100, (101, 2099, ACKNOWLEDGED, 1), end=9000)
    untimed = replace(partition, oldest=OldestRecord(offset=100, timestamp=-1))
    (finding,) = found(untimed)

    assert "wait for offset 100, of unknown age; nothing after" in finding.text


# No stored start offset.


FROM_START = replace(GROUP, offset_reset="earliest")
AT_END = replace(GROUP, offset_reset="latest")


def settled_nothing(first, end, *, age=None, members=("ann",)):
    """Return a partition without a stored start offset; `first` is where it begins."""
    state = SharePartitionState(start_offset=None, state_epoch=1, batches=())
    oldest = None
    if age is not None:
        oldest = OldestRecord(offset=first, timestamp=round((NOW - age) * 1000))
    return PartitionState(
        start_offset=None,
        log_start_offset=0,
        end_offset=end,
        ranges=offset_ranges_of(state, 0, end, first),
        oldest=oldest,
        members=members,
        first_offset=first,
    )


def test_group_that_settled_nothing_for_longer_than_a_lock_is_held():
    (finding,) = found(settled_nothing(5, 305, age=720), FROM_START)

    assert (Reason.HELD, Severity.STALLED) == (finding.reason, finding.severity)
    assert (
        "nothing was ever settled or released, and 300 offsets wait, the first is "
        "offset 5, 12 min old: its member holds records without settling them, or "
        f"cannot fetch. {LOOK}; look at consumers for records that are never "
        "acknowledged. If the members joined just now, inspect again in 30 s"
    ) == finding.text


@pytest.mark.parametrize(("age", "unchanged"), [(5, None), (5, 3600), (3600, 5)])
def test_group_is_not_held_before_a_lock_has_ended(age, unchanged):
    partition = settled_nothing(0, 10, age=age)
    (finding,) = found(partition, FROM_START, unchanged_for=unchanged)

    assert (Reason.NOT_BEGUN, Severity.NOTE) == (finding.reason, finding.severity)
    assert "10 offsets wait, the first is offset 0" in finding.text


def test_records_without_age_are_held_if_the_group_was_watched():
    partition = settled_nothing(0, 10)

    assert [Reason.NOT_BEGUN] == reasons(partition, FROM_START)
    assert [Reason.HELD] == reasons(partition, FROM_START, unchanged_for=60)


def test_group_at_the_end_of_the_log_without_new_records_is_healthy():
    partition = settled_nothing(None, 300)
    (finding,) = found(partition, AT_END, unchanged_for=3600)

    assert (Reason.NOT_BEGUN, Severity.NOTE) == (finding.reason, finding.severity)
    assert "share.auto.offset.reset=latest" in finding.text
    assert [Reason.NOT_BEGUN] == reasons(settled_nothing(300, 300), AT_END)


def test_records_that_arrived_while_a_group_at_the_end_was_watched_are_held():
    partition = settled_nothing(300, 310, age=60)

    assert [Reason.HELD] == reasons(partition, AT_END, unchanged_for=3600)


def test_records_of_a_group_that_settled_nothing_wait_for_members():
    without_members = replace(FROM_START, members=0)
    partition = settled_nothing(0, 10, age=60, members=())

    assert [Reason.NO_MEMBERS, Reason.NOT_BEGUN] == reasons(partition, without_members)


def test_group_that_has_just_joined_can_be_without_an_assignment():
    partition = settled_nothing(0, 10, age=3600, members=())
    (finding,) = found(partition, FROM_START)

    assert Reason.NOT_BEGUN is finding.reason
    assert "assigned it to no member; 10 offsets wait" in finding.text
    assert Reason.UNASSIGNED in reasons(partition, FROM_START, unchanged_for=60)


def test_new_record_of_a_group_that_was_idle_for_long_is_no_missing_progress():
    partition = inspection(10, end=11, age=1, log_start=10)

    assert [Reason.WORKING] == reasons(partition, unchanged_for=3600)
    assert [Reason.NO_PROGRESS] == reasons(
        inspection(10, end=11, age=60, log_start=10), unchanged_for=3600
    )


# Records before the start.


def test_group_that_began_after_records_has_their_number_until_it_settles_one():
    (finding,) = found(inspection(20, end=20), AT_END)
    settled = inspection(20, (20, 20, ACKNOWLEDGED, 1), end=21)

    assert (Reason.SKIPPED, Severity.NOTE) == (finding.reason, finding.severity)
    assert finding.text.startswith(
        "the group began at offset 20, by share.auto.offset.reset (now latest) or by a "
        "reset of its offsets, and has settled nothing since: 20 offsets in the log "
        "before it, which it never receives"
    )
    assert [Reason.SETTLED] == reasons(settled, AT_END)
    assert [Reason.SETTLED] == reasons(inspection(20, end=20, log_start=20), AT_END)


def test_group_that_began_at_an_unknown_offset_has_the_size_of_the_log():
    (finding,) = found(settled_nothing(None, 300), AT_END)

    assert "records before it (the log has 300 offsets now) are never" in finding.text


def test_only_partitions_with_members_and_old_records_may_stand_still():
    assert may_stand_still(inspection(0, end=9, age=31), GROUP, NOW)
    assert may_stand_still(inspection(0, end=9), GROUP, NOW), "its age is unknown"
    assert not may_stand_still(inspection(0, end=9, age=29), GROUP, NOW)
    assert not may_stand_still(inspection(0, end=9, age=31, members=()), GROUP, NOW)
    assert not may_stand_still(inspection(9, end=9), GROUP, NOW)
