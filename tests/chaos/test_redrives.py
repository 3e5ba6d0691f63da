"""The verdict about redriven dead letters, from hand-written logs."""

from tests.chaos.reading import LogRecord, short_reason
from tests.chaos.redrives import Redrives


def record(number: int, **headers: str) -> LogRecord:
    names = {
        f"sharecons.{name.replace('_', '.')}": text for name, text in headers.items()
    }
    return LogRecord(number, "orders", 0, number, names)


def letter(number: int, redrives: int = 0, offset: int | None = None) -> LogRecord:
    origin = str(number if offset is None else offset)
    return record(number, redrives=str(redrives), origin_offset=origin)


def redriven(number: int, of: str = "orders.dead:0:1") -> LogRecord:
    return record(number, redrive_of=of)


def test_dead_letter_is_redriven_once() -> None:
    assert [] == Redrives([record(1), redriven(1)], [letter(1)]).twice
    assert ["orders.dead:0:1"] == Redrives([redriven(1), redriven(1)], []).twice


def test_dead_letter_stays_after_three_redrives() -> None:
    letters = [letter(1, count, offset=count) for count in range(4)]
    copies = [redriven(1, of=f"orders.dead:0:{count}") for count in range(3)]

    assert set() == Redrives(copies, letters).not_redriven()
    assert {1} == Redrives(copies[:2], letters).not_redriven()
    assert set() == Redrives(copies[:2], letters, without=[1]).not_redriven()


def test_dead_letters_of_one_record_are_redriven_once() -> None:
    assert set() == Redrives([redriven(1)], [letter(1), letter(1)]).not_redriven()


def test_each_redriven_copy_needs_an_end_of_its_own() -> None:
    redrives = Redrives([record(1), redriven(1)], [letter(1)])

    assert {1} == redrives.without_end({})
    assert set() == redrives.without_end({1: 1})
    again = Redrives([record(1), redriven(1)], [letter(1), letter(1, 1, offset=9)])
    assert set() == again.without_end({})


def test_notes_count_the_redrives() -> None:
    redrives = Redrives([redriven(1)], [letter(1), letter(2, 3)])

    assert ["1 redriven; dead letters were redriven: 1 0 times, 1 3 times"] == (
        redrives.notes()
    )


def test_reasons_are_alike_without_their_numbers() -> None:
    assert "failed after N attempts" == short_reason("failed after 3 attempts: E: 17")
