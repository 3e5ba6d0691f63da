"""The ledger's rules, one by one."""

import pickle

import pytest

from sharecons.protocol.partitions import SharePartition
from sharecons.spark.errors import LedgerLostError, LedgerMismatchError
from sharecons.spark.ledger import AcquiredRange, Ledger

ORDERS = bytes(range(16))
RECREATED_ORDERS = bytes(range(1, 17))
P0 = SharePartition(ORDERS, 0)


def acquired(first, last, count=1, partition=0, topic_id=ORDERS):
    return AcquiredRange("orders", topic_id, partition, first, last, count)


def ledger_of(*segments):
    ledger = Ledger()
    for segment in segments:
        ledger.append(ledger.select_new(segment))
    return ledger


# select_new and set_start_offset.


def test_redelivered_offsets_are_not_new():
    ledger = ledger_of([acquired(0, 9)])

    assert [] == ledger.select_new([acquired(0, 9, count=2)])
    assert [acquired(10, 12, 2)] == ledger.select_new([acquired(5, 12, count=2)])


def test_offsets_on_both_sides_of_a_known_range_are_new():
    ledger = ledger_of([acquired(10, 19)])

    assert [acquired(5, 9), acquired(20, 24)] == ledger.select_new([acquired(5, 24)])


def test_offsets_acquired_twice_in_one_call_are_new_once():
    assert [acquired(0, 9)] == Ledger().select_new(
        [acquired(0, 9), acquired(3, 7, count=2)]
    )


def test_select_new_does_not_change_the_ledger():
    ledger = Ledger()
    ledger.select_new([acquired(0, 9)])

    assert 0 == ledger.end
    assert [acquired(0, 9)] == ledger.select_new([acquired(0, 9)])


def test_partitions_are_independent():
    ledger = ledger_of([acquired(0, 9, partition=0)])

    assert [acquired(0, 9, partition=1)] == ledger.select_new(
        [acquired(0, 9, partition=1)]
    )


def test_trimmed_offsets_are_redeliverable():
    ledger = ledger_of([acquired(0, 9)])
    ledger.trim(10)

    assert [] == ledger.select_new([acquired(0, 9, count=2)])
    assert {P0: [(0, 9)]} == ledger.redeliverable


def test_offset_at_the_start_offset_is_still_redeliverable():
    ledger = ledger_of([acquired(0, 9)])
    ledger.trim(10)
    ledger.set_start_offset(ORDERS, 0, 7)

    assert {P0: [(7, 9)]} == ledger.redeliverable


def test_offsets_before_the_start_offset_are_known_until_committed():
    ledger = ledger_of([acquired(0, 9)])
    ledger.set_start_offset(ORDERS, 0, 10)

    assert [] == ledger.select_new([acquired(0, 9, count=2)])

    ledger.trim(10)

    assert {} == ledger.redeliverable


def test_committed_offsets_before_the_start_offset_are_new():
    ledger = ledger_of([acquired(0, 9)])
    ledger.trim(10)
    ledger.set_start_offset(ORDERS, 0, 10)

    assert [acquired(0, 9)] == ledger.select_new([acquired(0, 9)])


def test_set_start_offset_does_not_disturb_a_concurrent_reader():
    ledger = ledger_of(*[[acquired(n * 20, n * 20 + 9)] for n in range(50)])
    ledger.trim(500)
    missing = ledger._redeliverable[P0].missing
    ledger.set_start_offset(ORDERS, 0, 900)

    assert [] == missing(0, 9)
    assert [(900, 909), (920, 929), (940, 949), (960, 969), (980, 989)] == (
        ledger.redeliverable[P0]
    )


def test_memory_does_not_grow_with_trimmed_ranges():
    ledger = Ledger()
    for number in range(1000):
        ledger.append(
            ledger.select_new([acquired(number * 10, number * 10 + 9, number % 3)])
        )
        ledger.trim(ledger.end - 20)

    assert 2 == len(ledger)
    assert {P0: [(0, 9979)]} == ledger.redeliverable


# Positions.


def test_positions_count_offsets_in_order_of_acquisition():
    ledger = ledger_of(
        [acquired(5, 9), acquired(0, 3, partition=1)], [acquired(10, 14)]
    )

    assert 14 == ledger.end
    assert [acquired(8, 9), acquired(0, 1, partition=1)] == ledger.ranges_between(3, 7)
    assert [acquired(2, 3, partition=1), acquired(10, 14)] == ledger.ranges_between(
        7, 14
    )
    assert [] == ledger.ranges_between(7, 7)


def test_adjacent_ranges_are_joined():
    ledger = ledger_of([acquired(0, 4)], [acquired(5, 9)])

    assert 1 == len(ledger)
    assert [acquired(0, 9)] == ledger.ranges_between(0, 10)


def test_ranges_of_different_delivery_counts_are_not_joined():
    ledger = ledger_of([acquired(0, 4)], [acquired(5, 9, count=2)])

    assert [acquired(0, 4), acquired(5, 9, count=2)] == ledger.ranges_between(0, 10)


def test_trim_within_a_range_keeps_the_rest():
    ledger = ledger_of([acquired(0, 9)], [acquired(0, 9, partition=1)])
    before = ledger.ranges_between(4, 20)
    ledger.trim(4)

    assert 4 == ledger.begin
    assert before == ledger.ranges_between(4, 20)
    assert [acquired(6, 7)] == ledger.ranges_between(6, 8)


def test_trim_before_begin_changes_nothing():
    ledger = ledger_of([acquired(0, 9)])
    ledger.trim(5)
    ledger.trim(3)

    assert 5 == ledger.begin


def test_positions_continue_after_everything_is_trimmed():
    ledger = ledger_of([acquired(0, 9)])
    ledger.trim(10)
    ledger.append([acquired(10, 12)])

    assert [acquired(10, 12)] == ledger.ranges_between(10, 13)


def test_trimmed_position_is_an_error():
    ledger = ledger_of([acquired(0, 9)])
    ledger.trim(5)

    with pytest.raises(
        LedgerLostError, match="begins at position 5, but 3 is requested"
    ):
        ledger.ranges_between(3, 9)


@pytest.mark.parametrize(
    "call", [lambda x: x.ranges_between(0, 11), lambda x: x.trim(11)]
)
def test_position_beyond_the_end_is_an_error(call):
    with pytest.raises(
        LedgerLostError, match="ends at position 10, but 11 is requested"
    ):
        call(ledger_of([acquired(0, 9)]))


def test_start_after_end_is_a_value_error():
    with pytest.raises(ValueError, match="7 is after position 3"):
        ledger_of([acquired(0, 9)]).ranges_between(7, 3)


# Topics.


def test_recreated_topic_is_an_error():
    ledger = ledger_of([acquired(0, 9)])

    with pytest.raises(
        LedgerMismatchError, match="orders was deleted and created again"
    ):
        ledger.check_topics({"orders": RECREATED_ORDERS})
    with pytest.raises(LedgerMismatchError):
        ledger.select_new([acquired(0, 9, topic_id=RECREATED_ORDERS)])


def test_recreated_topic_is_accepted_with_offsets_of_its_own():
    ledger = ledger_of([acquired(0, 9)])
    ledger.trim(10)
    ledger.check_topics({"orders": RECREATED_ORDERS}, allow_recreated=True)
    recreated = acquired(0, 9, topic_id=RECREATED_ORDERS)

    assert {"orders": RECREATED_ORDERS} == ledger.topics
    assert [recreated] == ledger.select_new([recreated])
    assert {} == ledger.redeliverable


def test_recreated_topic_is_accepted_with_its_first_records():
    ledger = ledger_of([acquired(0, 9)])
    recreated = acquired(0, 4, topic_id=RECREATED_ORDERS)

    assert [recreated] == ledger.select_new(
        [acquired(3, 9, count=2), recreated], allow_recreated=True
    )
    ledger.append([recreated])
    assert [] == ledger.select_new([recreated], allow_recreated=True)
    assert [acquired(0, 9), recreated] == ledger.ranges_between(0, 15)


def test_late_offsets_of_a_replaced_topic_are_not_new():
    ledger = ledger_of([acquired(0, 9)])
    recreated = acquired(0, 4, topic_id=RECREATED_ORDERS)
    ledger.append(ledger.select_new([recreated], allow_recreated=True))
    ledger.trim(15)

    # The new topic stays current: its offsets are still known.
    assert [] == ledger.select_new([acquired(10, 19), recreated], allow_recreated=True)
    assert [] == ledger.select_new([acquired(10, 19), recreated])
    assert {"orders": RECREATED_ORDERS} == ledger.topics


def test_committed_offsets_of_a_deleted_topic_are_not_redeliverable():
    ledger = ledger_of([acquired(0, 9)])
    ledger.append(
        ledger.select_new(
            [acquired(0, 4, topic_id=RECREATED_ORDERS)], allow_recreated=True
        )
    )
    ledger.trim(15)

    assert {SharePartition(RECREATED_ORDERS, 0): [(0, 4)]} == ledger.redeliverable


def test_check_topics_accepts_unknown_topics():
    ledger = ledger_of([acquired(0, 9)])
    ledger.check_topics({"orders": ORDERS, "returns": RECREATED_ORDERS})

    assert {"orders": ORDERS} == ledger.topics


def test_ranges_are_picklable():
    acquired_range = acquired(3, 9)

    assert acquired_range == pickle.loads(pickle.dumps(acquired_range))
    assert 7 == acquired_range.size
