"""The ledger of a long run, block by block."""

from tests.chaos.journal import Entry
from tests.soak.books import PATIENCE, QUIET, Books


def entry(seconds: float, kind: str, number: int = -1, offset: int = 0) -> Entry:
    return Entry(seconds, kind, number, "orders", 0, offset, 1, "", "journal-0-0")


class History:
    """Books of blocks of two numbers; number n is written at n seconds."""

    def __init__(self, count: int) -> None:
        self.written = {number: float(number) for number in range(count)}
        self.confirmed = {number: number + 0.5 for number in range(count)}
        self.dead: set[int] = set()
        self.books = Books(
            2,
            written=self.written,
            confirmed=self.confirmed,
            dead=self.dead,
            killed={},
        )


def test_block_is_closed_and_forgotten_once_it_is_quiet() -> None:
    history = History(4)
    history.books.add([entry(5.0, "handled", 0), entry(6.0, "handled", 1)])

    history.books.close(6.0 + QUIET)
    assert 0 == history.books.total.produced

    history.books.close(6.1 + QUIET)
    assert (2, 2) == (history.books.total.produced, history.books.total.handled)
    assert 4.5 == history.books.total.delay
    assert {2, 3} == history.written.keys() == history.confirmed.keys()


def test_block_with_a_record_without_an_end_stays_open_and_is_lost_at_last() -> None:
    history = History(4)
    history.books.add([entry(5.0, "handled", 0)])

    history.books.close(PATIENCE)
    assert [] == history.books.total.lost

    history.books.close(PATIENCE + 2.1)
    assert [1] == history.books.total.lost


def test_rejected_records_and_dead_letters_have_ends() -> None:
    history = History(4)
    history.dead |= {1}
    history.books.add([entry(5.0, "rejected", 0)])

    history.books.close(6.0 + QUIET)

    total = history.books.total
    assert ([], 1, 1) == (total.lost, total.rejected, total.dead)
    assert set() == history.dead


def test_duplicate_in_an_open_block_has_its_reason() -> None:
    history = History(4)
    failed = Entry(
        5.1, "failed", -1, "orders", 0, 0, 1, "NETWORK_EXCEPTION", "journal-0-0"
    )
    history.books.add(
        [
            entry(5.0, "handled", 0),
            failed,
            entry(6.0, "handled", 0),
            entry(6.0, "handled", 1, offset=1),
        ]
    )

    history.books.close(7.0 + QUIET)

    assert {"NETWORK_EXCEPTION": 1} == history.books.total.duplicates
    assert [] == history.books.total.unexplained


def test_record_of_a_closed_block_that_comes_again_is_unexplained() -> None:
    history = History(4)
    history.books.add([entry(5.0, "handled", 0), entry(5.0, "handled", 1)])
    history.books.close(6.0 + QUIET)

    history.books.add([entry(200.0, "handled", 1)])

    assert [1] == history.books.total.unexplained


def test_end_of_the_run_closes_all_blocks() -> None:
    history = History(5)
    history.books.add([entry(5.0, "handled", n, offset=n) for n in (0, 1, 2, 4)])
    assert 1 == history.books.open

    history.books.close_all()

    assert ([3], 5) == (history.books.total.lost, history.books.total.produced)
    assert {} == history.written
