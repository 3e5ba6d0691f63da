"""The progress line and its rate."""

import pytest

from sharecons.cli.run.progress import ProgressMeter, done
from sharecons.worker.stats import WorkerStats


def accepted(count):
    return WorkerStats(accepted=count)


def test_rate_is_that_of_the_last_seconds():
    meter = ProgressMeter(0.0)
    rates = [meter.rate(accepted(100 * t), float(t)) for t in range(1, 11)]
    slower = [meter.rate(accepted(1000), 10.0 + t) for t in range(1, 5)]

    assert [100.0] * 10 == rates
    assert [pytest.approx(50.0), 0.0, 0.0, 0.0] == slower


def test_no_time_has_no_rate():
    assert 0.0 == ProgressMeter(5.0).rate(accepted(10), 5.0)


def test_line_has_all_numbers():
    stats = WorkerStats(
        accepted=1200, running=3, waiting=2, retried=7, dead_lettered=1, rejected=4
    )

    assert 1205 == done(stats)
    assert (
        "1,205 records/s  1,205 done  3 running  2 waiting  7 retried  "
        "1 dead-lettered  4 rejected"
    ) == ProgressMeter(0.0).line(stats, 1.0)
