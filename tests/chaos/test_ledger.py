"""The verdict of a chaos run, from hand-written journals."""

from tests.chaos.journal import Entry, Journal, read_journal
from tests.chaos.ledger import Ledger, Verdict


def entry(seconds: float, kind: str, number: int = -1, **other: object) -> Entry:
    offset = other.pop("offset", max(number, 0))
    given = {
        "topic": "orders",
        "partition": 0,
        "count": 1,
        "error": "",
        "process": "journal-0-0",
        **other,
    }
    return Entry(
        seconds=seconds,
        kind=kind,
        number=number,
        offset=offset,  # type: ignore[arg-type]
        **given,  # type: ignore[arg-type]
    )


def verdict_of(*entries: Entry, confirmed: int = 1, **options: object) -> Verdict:
    times = dict.fromkeys(range(confirmed), 1.0)
    ledger = Ledger(times, entries, **options)  # type: ignore[arg-type]
    return ledger.verdict([(1.0, 2.0)], 0.0, 10.0)


def test_record_without_an_end_is_lost() -> None:
    entries = [entry(2.0, "handled", 0), entry(2.0, "rejected", 1)]

    verdict = verdict_of(*entries, confirmed=4, dead=[2])

    assert [3] == verdict.lost


def test_record_that_is_handled_again_after_its_accept_is_unexplained() -> None:
    verdict = verdict_of(
        entry(2.0, "handled", 0),
        entry(2.1, "accepted", offset=0),
        entry(3.0, "handled", 0, process="journal-1-0"),
    )

    assert [0] == verdict.unexplained
    assert {} == verdict.duplicates


def test_task_with_two_records_of_one_attempt_is_copied_twice() -> None:
    calls = [
        entry(2.0, "handled", 0, topic="-", partition=0, offset=0),
        entry(2.1, "accepted", offset=4),
        entry(3.0, "handled", 0, topic="-", partition=0, offset=0),
    ]
    where = {0: [("orders", 0, 4), ("orders", 0, 5)]}

    assert [0] == verdict_of(*calls, positions=where, results="some").unexplained
    verdict = verdict_of(*calls, positions=where, copied={0}, results="some")
    assert {"copied twice": 1} == verdict.duplicates


def test_reason_of_a_duplicate_is_the_error_of_its_accept() -> None:
    verdict = verdict_of(
        entry(2.0, "handled", 0),
        entry(2.1, "failed", offset=0, error="NETWORK_EXCEPTION"),
        entry(3.0, "handled", 0),
        entry(3.1, "accepted", offset=0),
    )

    assert {"NETWORK_EXCEPTION": 1} == verdict.duplicates
    assert [] == verdict.unexplained


def test_reason_of_a_duplicate_is_the_lock_that_was_lost_during_the_call() -> None:
    verdict = verdict_of(
        entry(2.0, "begun", 0),
        entry(2.1, "failed", offset=0, error="LockLost"),
        entry(2.2, "handled", 0),
        entry(3.0, "handled", 0, count=2),
    )

    assert {"LockLost": 1} == verdict.duplicates
    assert [] == verdict.unexplained


def test_reason_is_found_although_both_deliveries_have_the_same_count() -> None:
    verdict = verdict_of(
        entry(2.0, "begun", 0),
        entry(2.1, "handled", 0),
        entry(2.2, "failed", offset=0, error="UNKNOWN_TOPIC_OR_PARTITION"),
        entry(3.0, "begun", 0),
        entry(3.1, "handled", 0),
        entry(3.2, "accepted", offset=0),
    )

    assert {"UNKNOWN_TOPIC_OR_PARTITION": 1} == verdict.duplicates
    assert [] == verdict.unexplained


def test_lock_can_be_lost_as_the_thread_of_the_call_starts() -> None:
    def lost(error: str) -> Verdict:
        return verdict_of(
            entry(2.0, "failed", offset=0, error=error),
            entry(2.1, "begun", 0),
            entry(2.2, "handled", 0),
            entry(3.0, "handled", 0, count=2),
        )

    assert {"LockLost": 1} == lost("LockLost").duplicates
    assert [0] == lost("INVALID_RECORD_STATE").unexplained


def test_reason_of_a_duplicate_is_the_kill_of_its_process() -> None:
    entries = [entry(2.0, "handled", 0), entry(3.0, "handled", 0, process="other")]

    assert {"process killed": 1} == (
        verdict_of(*entries, killed={"journal-0-0": 2.5}).duplicates
    )
    assert [0] == verdict_of(*entries, killed={"journal-0-0": 1.5}).unexplained


def test_result_of_another_process_explains_nothing() -> None:
    verdict = verdict_of(
        entry(2.0, "handled", 0),
        entry(2.1, "failed", offset=0, error="NETWORK_EXCEPTION", process="other"),
        entry(3.0, "handled", 0),
    )

    assert [0] == verdict.unexplained


def test_silence_is_the_longest_gap_and_delay_the_longest_wait() -> None:
    verdict = verdict_of(
        entry(2.0, "handled", 0),
        entry(7.5, "handled", 1, partition=1),
        entry(8.0, "handled", 2),
        confirmed=3,
    )

    assert 5.5 == verdict.silence
    assert [(0.0, 2.0), (2.0, 7.5), (8.0, 10.0)] == verdict.silences
    assert 6.0 == verdict.partition_silence
    assert 7.0 == verdict.delay
    assert [7.0] == verdict.recoveries


def test_silence_of_the_retry_topic_does_not_count() -> None:
    handled = [entry(float(second), "handled", second) for second in range(10)]
    retried = entry(1.0, "handled", 10, topic="orders.retry")

    verdict = verdict_of(*handled, retried, retry_topic="orders.retry")

    assert 1.0 == verdict.partition_silence


def test_journal_is_read_as_it_was_written(tmp_path) -> None:
    path = tmp_path / "journal-2-1"
    journal = Journal(str(path))

    journal.note("handled", 7, "orders", 1, 42, 3)
    journal.note_all("failed", [(-1, "orders", 1, 42, 0)], "NETWORK_EXCEPTION")
    path.write_bytes(path.read_bytes() + b"handled 1 cut")

    handled, failed = read_journal(path)
    assert ("handled", 7, "orders", 1, 42, 3, "", "journal-2-1") == handled[1:]
    assert ("failed", "NETWORK_EXCEPTION") == (failed.kind, failed.error)


def test_reason_of_a_duplicate_is_the_crash_of_its_process() -> None:
    entries = [entry(2.0, "handled", 0), entry(3.0, "handled", 0, process="other")]

    verdict = verdict_of(*entries, crashed={"journal-0-0": 2.0})

    assert {"process crashed": 1} == verdict.duplicates


def test_records_of_a_deleted_topic_are_written_off() -> None:
    times = {0: 1.0, 1: 1.0, 2: 5.0}
    ledger = Ledger(times, [entry(2.0, "handled", 0)], deleted=[2.0, 4.0])

    verdict = ledger.verdict([], 0.0, 10.0)

    assert 1 == verdict.written_off
    assert [2] == verdict.lost
    assert {2} == ledger.unsettled()


def test_copies_of_a_record_that_was_delivered_twice_are_explained() -> None:
    calls = [
        entry(1.0, "begun", 0, topic="orders", process="first"),
        entry(2.0, "begun", 0, topic="orders", process="second"),
        entry(3.0, "begun", 0, topic="retry", offset=7),
        entry(3.0, "handled", 0, topic="retry", offset=7),
        entry(3.1, "accepted", topic="retry", offset=7),
        entry(4.0, "begun", 0, topic="retry", offset=9),
        entry(4.0, "handled", 0, topic="retry", offset=9),
    ]

    assert {"copied twice": 1} == verdict_of(*calls).duplicates
    assert [0] == verdict_of(*calls[1:]).unexplained


def test_batch_of_a_query_comes_again_whole_and_in_no_other_batch() -> None:
    batches = [
        entry(1.0, "handled", 0, error="batch-1"),
        entry(2.0, "handled", 0, error="batch-1"),
        entry(2.0, "handled", 1, error="batch-1"),
        entry(3.0, "handled", 1, error="batch-2"),
    ]

    verdict = verdict_of(*batches, confirmed=2)

    assert {"batch replayed": 1} == verdict.duplicates
    assert [1] == verdict.unexplained


def test_results_of_a_task_are_found_by_the_position_of_its_record() -> None:
    entries = [
        entry(1.0, "handled", 0, topic="-"),
        entry(1.1, "accepted", offset=42),
        entry(2.0, "handled", 0, topic="-", process="other"),
    ]

    def unexplained(*positions: tuple[str, int, int]) -> list[int]:
        known = {"positions": {0: positions}, "results": "some"}
        return verdict_of(*entries, **known).unexplained

    assert [0] == unexplained(("orders", 0, 42))
    assert [] == unexplained(("orders", 0, 41))


def test_copy_of_a_record_whose_accept_failed_is_explained() -> None:
    calls = [
        entry(1.0, "begun", 0, topic="orders"),
        entry(1.1, "failed", topic="orders", error="LockLost"),
        entry(2.0, "begun", 0, topic="orders"),
        entry(2.0, "handled", 0, topic="orders"),
        entry(2.1, "accepted", topic="orders"),
        entry(4.0, "begun", 0, topic="retry", offset=9),
        entry(4.0, "handled", 0, topic="retry", offset=9),
    ]

    assert {"copied twice": 1} == verdict_of(*calls).duplicates
    assert {"copied twice": 1} == verdict_of(*calls[:4], *calls[5:]).duplicates
    assert [0] == verdict_of(*calls[2:]).unexplained
