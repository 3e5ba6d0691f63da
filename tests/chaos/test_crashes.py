"""The verdict about records that end their process, from hand-written journals."""

from tests.chaos.crashes import Limits, archived_numbers, broken_rules, crash_notes
from tests.chaos.journal import Entry
from tests.chaos.test_ledger import entry


def crash(seconds: float, count: int, **other: object) -> Entry:
    return entry(seconds, "crashes", 7, count=count, error="exit", **other)


def test_record_is_called_on_each_delivery_but_the_last_one() -> None:
    calls = [crash(n, n) for n in range(1, 5)]

    assert [] == broken_rules(calls, Limits(), has_dead_letters=True)
    assert ["7 was called on delivery 5"] == broken_rules(
        [*calls, crash(5.0, 5)], Limits(), has_dead_letters=True
    )
    assert [] == broken_rules([*calls, crash(5.0, 5)], Limits(), has_dead_letters=False)


def test_limit_counts_as_long_as_a_worker_can_have_read_the_old_one() -> None:
    limits = Limits([(100.0, 10), (500.0, 5)])

    assert [] == broken_rules([crash(130.0, 7)], limits, has_dead_letters=True)
    assert [] == broken_rules([crash(560.0, 7)], limits, has_dead_letters=True)
    assert broken_rules([crash(580.0, 7)], limits, has_dead_letters=True)


def test_record_on_its_third_delivery_runs_alone() -> None:
    beside = entry(1.0, "begun", 3)
    ended = entry(2.0, "handled", 3)
    elsewhere = entry(1.0, "begun", 4, process="other")

    def broken(count: int, *entries: Entry) -> list[str]:
        calls = [elsewhere, *entries, crash(2.5, count)]
        return broken_rules(calls, Limits(), has_dead_letters=True)

    assert [] == broken(2, beside)
    assert ["7 ran beside [3], not alone"] == broken(3, beside)
    assert [] == broken(3, beside, ended)


def test_record_without_dead_letters_is_archived_by_its_last_crash() -> None:
    assert set() == archived_numbers([crash(n, n) for n in range(1, 5)], Limits())
    assert {7} == archived_numbers([crash(n, n) for n in range(1, 6)], Limits())
    # A task does not know its delivery.
    assert {7} == archived_numbers([crash(n, 0) for n in range(5)], Limits())


def test_notes_have_the_crashes_of_a_record_and_its_end() -> None:
    calls = [crash(n, n) for n in range(1, 5)]

    assert [
        "1 records ended a process 4 times: 1 x (exit 4x: dead letter, its last one)"
    ] == crash_notes(calls, {7: "its last one"}, ())
    assert ["1 records ended a process 4 times: 1 x (exit 4x: open)"] == crash_notes(
        calls, {}, ()
    )
    assert [
        "1 records ended a process 4 times: 1 x (exit 4x: processed)"
    ] == crash_notes([*calls, entry(9.0, "handled", 7)], {}, ())
