"""The verdict about the order of records with one key, from hand-written journals."""

from tests.chaos.key_order import out_of_order
from tests.chaos.test_ledger import entry

# Numbers 1 and 101 have the key k1, and 50 another one; 51 has no key.
FIRST, SECOND, OTHER = 1, 101, 50


def test_later_record_of_a_key_is_handled_later() -> None:
    handled = [
        entry(1.0, "handled", FIRST),
        entry(2.0, "handled", SECOND),
        entry(3.0, "handled", OTHER),
    ]

    assert [] == out_of_order(handled, [])


def test_earlier_record_of_a_key_that_is_handled_later_breaks_the_order() -> None:
    later = entry(1.0, "handled", SECOND)

    assert ["1 was handled after 101 of its key, in journal-0-0"] == out_of_order(
        [later, entry(2.0, "handled", FIRST)], []
    )
    assert [] == out_of_order([later, entry(2.0, "handled", FIRST, process="b")], [])
    assert [] == out_of_order([later, entry(2.0, "handled", FIRST, count=2)], [])


def test_record_can_come_again_as_new_after_its_partition_has_moved() -> None:
    handled = [entry(100.0, "handled", SECOND), entry(110.0, "handled", FIRST)]

    assert [] == out_of_order(handled, [(50.0, 60.0)])
    assert [] != out_of_order(handled, [(20.0, 30.0)])
    assert [] != out_of_order(handled, [(120.0, 130.0)])
