"""The batches that a run keeps, and its table."""

from sharecons.spark.pipeline.run_stats import RunStats, format_table
from tests.spark.batch_stats import batch_stats, run_of


def test_table_has_a_line_per_batch_and_a_total():
    run = run_of([batch_stats(0), batch_stats(1, rows=500)])
    lines = format_table(run).splitlines()

    assert len(lines) == 4
    assert lines[1].split()[:2] == ["0", "1,000"]
    assert lines[-1].split() == ["all", "1,500", "6", "4"]


def test_run_without_batches_has_no_table():
    assert format_table(RunStats()) == "no records\n"


def test_table_of_a_long_run_has_its_last_batches_and_the_totals_of_all():
    lines = format_table(run_of(batch_stats(n) for n in range(1060))).splitlines()

    assert len(lines) == 53
    assert lines[1] == "  ...  1,010 earlier; `runs` has all"
    assert lines[2].split()[0] == "1010"
    assert lines[-1].split() == ["all", "1,060,000", "3,180", "2,120"]


def test_run_keeps_the_last_batches_and_all_totals(monkeypatch):
    monkeypatch.setattr("sharecons.spark.pipeline.run_stats.KEPT", 3)
    run = run_of(batch_stats(n) for n in range(5))

    assert [each.number for each in run.latest()] == [2, 3, 4]
    assert (run.count, run.rows) == (5, 5000)
