"""The ledger's rules, one by one."""

import pickle

import pytest

from sharecons.protocol.messages import SharePartition
from sharecons.spark.errors import LedgerLostError, LedgerMismatchError
from sharecons.spark.ledger import AcquiredRange, Ledger

ORDERS = bytes(range(16))
ORDERS_MADE_ANEW = bytes(range(1, 17))
P0 = SharePartition(ORDERS, 0)


def given(first, last, count=1, partition=0, topic_id=ORDERS):
    return AcquiredRange("orders", topic_id, partition, first, last, count)


def ledger_of(*segments):
    ledger = Ledger()
    for segment in segments:
        ledger.append(ledger.select_new(segment))
    return ledger


# What is new.


def test_what_is_given_again_is_not_new():
    ledger = ledger_of([given(0, 9)])

    assert [] == ledger.select_new([given(0, 9, count=2)])
    assert [given(10, 12, 2)] == ledger.select_new([given(5, 12, count=2)])


def test_what_a_redelivery_holds_on_both_sides_of_the_known_is_new():
    ledger = ledger_of([given(10, 19)])

    assert [given(5, 9), given(20, 24)] == ledger.select_new([given(5, 24)])


def test_what_is_given_twice_at_once_is_entered_once():
    assert [given(0, 9)] == Ledger().select_new([given(0, 9), given(3, 7, count=2)])


def test_asking_what_is_new_enters_nothing():
    ledger = Ledger()
    ledger.select_new([given(0, 9)])

    assert 0 == ledger.end
    assert [given(0, 9)] == ledger.select_new([given(0, 9)])


def test_partitions_are_kept_apart():
    ledger = ledger_of([given(0, 9, partition=0)])

    assert [given(0, 9, partition=1)] == ledger.select_new([given(0, 9, partition=1)])


def test_trimmed_offsets_are_remembered():
    ledger = ledger_of([given(0, 9)])
    ledger.trim(10)

    assert [] == ledger.select_new([given(0, 9, count=2)])
    assert {P0: [(0, 9)]} == ledger.redeliverable


def test_offset_at_the_start_offset_is_still_remembered():
    ledger = ledger_of([given(0, 9)])
    ledger.trim(10)
    ledger.set_start_offset(ORDERS, 0, 7)

    assert {P0: [(7, 9)]} == ledger.redeliverable


def test_what_the_start_offset_passed_is_kept_until_it_is_committed():
    ledger = ledger_of([given(0, 9)])
    ledger.set_start_offset(ORDERS, 0, 10)

    assert [] == ledger.select_new([given(0, 9, count=2)])

    ledger.trim(10)

    assert {} == ledger.redeliverable


def test_group_that_is_set_back_gives_what_was_committed_once_more():
    ledger = ledger_of([given(0, 9)])
    ledger.trim(10)
    ledger.set_start_offset(ORDERS, 0, 10)

    assert [given(0, 9)] == ledger.select_new([given(0, 9)])


def test_start_offset_that_is_told_while_it_is_asked_what_is_new_disturbs_nobody():
    ledger = ledger_of(*[[given(n * 20, n * 20 + 9)] for n in range(50)])
    ledger.trim(500)
    missing = ledger._redeliverable[P0].missing
    ledger.set_start_offset(ORDERS, 0, 900)

    assert [] == missing(0, 9)
    assert [(900, 909), (920, 929), (940, 949), (960, 969), (980, 989)] == (
        ledger.redeliverable[P0]
    )


def test_memory_of_a_long_run_counts_holes_and_not_ranges():
    ledger = Ledger()
    for number in range(1000):
        ledger.append(
            ledger.select_new([given(number * 10, number * 10 + 9, number % 3)])
        )
        ledger.trim(ledger.end - 20)

    assert 2 == len(ledger)
    assert {P0: [(0, 9979)]} == ledger.redeliverable


# Positions.


def test_position_counts_offsets_in_the_order_in_which_they_came():
    ledger = ledger_of([given(5, 9), given(0, 3, partition=1)], [given(10, 14)])

    assert 14 == ledger.end
    assert [given(8, 9), given(0, 1, partition=1)] == ledger.ranges_between(3, 7)
    assert [given(2, 3, partition=1), given(10, 14)] == ledger.ranges_between(7, 14)
    assert [] == ledger.ranges_between(7, 7)


def test_range_that_goes_on_is_joined():
    ledger = ledger_of([given(0, 4)], [given(5, 9)])

    assert 1 == len(ledger)
    assert [given(0, 9)] == ledger.ranges_between(0, 10)


def test_ranges_of_other_delivery_counts_stay_apart():
    ledger = ledger_of([given(0, 4)], [given(5, 9, count=2)])

    assert [given(0, 4), given(5, 9, count=2)] == ledger.ranges_between(0, 10)


def test_trim_inside_a_range_leaves_the_rest_as_it_was():
    ledger = ledger_of([given(0, 9)], [given(0, 9, partition=1)])
    before = ledger.ranges_between(4, 20)
    ledger.trim(4)

    assert 4 == ledger.begin
    assert before == ledger.ranges_between(4, 20)
    assert [given(6, 7)] == ledger.ranges_between(6, 8)


def test_trim_to_what_is_trimmed_changes_nothing():
    ledger = ledger_of([given(0, 9)])
    ledger.trim(5)
    ledger.trim(3)

    assert 5 == ledger.begin


def test_positions_go_on_after_all_was_trimmed():
    ledger = ledger_of([given(0, 9)])
    ledger.trim(10)
    ledger.append([given(10, 12)])

    assert [given(10, 12)] == ledger.ranges_between(10, 13)


def test_trimmed_position_is_refused():
    ledger = ledger_of([given(0, 9)])
    ledger.trim(5)

    with pytest.raises(
        LedgerLostError, match="begins at position 5, but 3 is requested"
    ):
        ledger.ranges_between(3, 9)


@pytest.mark.parametrize(
    "ask", [lambda x: x.ranges_between(0, 11), lambda x: x.trim(11)]
)
def test_position_that_was_never_reached_is_refused(ask):
    with pytest.raises(
        LedgerLostError, match="ends at position 10, but 11 is requested"
    ):
        ask(ledger_of([given(0, 9)]))


def test_positions_that_run_backwards_are_a_mistake():
    with pytest.raises(ValueError, match="7 is after position 3"):
        ledger_of([given(0, 9)]).ranges_between(7, 3)


# Topics.


def test_topic_made_anew_is_refused():
    ledger = ledger_of([given(0, 9)])

    with pytest.raises(
        LedgerMismatchError, match="orders was deleted and created again"
    ):
        ledger.check_topics({"orders": ORDERS_MADE_ANEW})
    with pytest.raises(LedgerMismatchError):
        ledger.select_new([given(0, 9, topic_id=ORDERS_MADE_ANEW)])


def test_topic_made_anew_is_adopted_and_its_offsets_are_others():
    ledger = ledger_of([given(0, 9)])
    ledger.trim(10)
    ledger.check_topics({"orders": ORDERS_MADE_ANEW}, allow_recreated=True)
    anew = given(0, 9, topic_id=ORDERS_MADE_ANEW)

    assert {"orders": ORDERS_MADE_ANEW} == ledger.topics
    assert [anew] == ledger.select_new([anew])
    assert {} == ledger.redeliverable


def test_topic_made_anew_is_adopted_with_what_is_given_of_it():
    ledger = ledger_of([given(0, 9)])
    anew = given(0, 4, topic_id=ORDERS_MADE_ANEW)

    assert [anew] == ledger.select_new(
        [given(3, 9, count=2), anew], allow_recreated=True
    )
    ledger.append([anew])
    assert [] == ledger.select_new([anew], allow_recreated=True)
    assert [given(0, 9), anew] == ledger.ranges_between(0, 15)


def test_what_still_comes_of_a_topic_that_was_replaced_is_not_new():
    ledger = ledger_of([given(0, 9)])
    anew = given(0, 4, topic_id=ORDERS_MADE_ANEW)
    ledger.append(ledger.select_new([anew], allow_recreated=True))
    ledger.trim(15)

    # It does not make the new one a stranger: what comes of that again is known.
    assert [] == ledger.select_new([given(10, 19), anew], allow_recreated=True)
    assert [] == ledger.select_new([given(10, 19), anew])
    assert {"orders": ORDERS_MADE_ANEW} == ledger.topics


def test_committed_offsets_of_a_topic_that_is_gone_are_not_remembered():
    ledger = ledger_of([given(0, 9)])
    ledger.append(
        ledger.select_new(
            [given(0, 4, topic_id=ORDERS_MADE_ANEW)], allow_recreated=True
        )
    )
    ledger.trim(15)

    assert {SharePartition(ORDERS_MADE_ANEW, 0): [(0, 4)]} == ledger.redeliverable


def test_topic_that_the_ledger_does_not_know_is_welcome():
    ledger = ledger_of([given(0, 9)])
    ledger.check_topics({"orders": ORDERS, "returns": ORDERS_MADE_ANEW})

    assert {"orders": ORDERS} == ledger.topics


def test_ranges_travel_to_executors():
    taken = given(3, 9)

    assert taken == pickle.loads(pickle.dumps(taken))
    assert 7 == taken.size
