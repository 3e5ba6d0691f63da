"""Searches for the oldest record, continued by the next collection."""

from sharecons.group_state.offset_states import OffsetRange, OffsetStatus, OldestRecord
from sharecons.group_state.record_search import FoundRecords, continued, joined

RECORD = OldestRecord(offset=6, timestamp=0)


def unsettled(*pairs):
    return tuple(
        OffsetRange(first_offset=first, last_offset=last, status=OffsetStatus.ABOVE)
        for first, last in pairs
    )


def pairs(ranges):
    return [(each.first_offset, each.last_offset) for each in ranges]


def test_search_that_found_a_record_is_not_repeated():
    known = FoundRecords(3, RECORD, 10, ((3, 5),))

    assert () == continued(known, unsettled((3, 9)))
    assert known == joined(known, None, unsettled((3, 9)))


def test_search_begins_again_once_its_record_is_settled():
    known, now = FoundRecords(3, RECORD, 10, ((3, 5),)), unsettled((3, 5), (7, 9))

    assert now == continued(known, now)
    assert joined(known, None, now) is None


def test_search_without_a_record_is_continued():
    known = FoundRecords(3, None, 6, ((3, 5),))

    assert [(6, 9)] == pairs(continued(known, unsettled((3, 9))))
    assert [(3, 9)] == pairs(
        continued(known._replace(first_offset=2), unsettled((3, 9)))
    )


def test_offsets_without_records_of_many_searches_are_one_range():
    known = None
    for end in range(5, 100):
        found = FoundRecords(end - 2, None, end, ((end - 2, end - 1),))
        known = joined(known, found, unsettled((3, end - 1)))

    assert ((3, 98),) == known.without_record


def test_settled_offsets_are_dropped_from_offsets_without_records():
    known = FoundRecords(3, None, 10, ((3, 9),))
    now = joined(known, None, unsettled((3, 4), (8, 9)))

    assert ((3, 4), (8, 9)) == now.without_record
