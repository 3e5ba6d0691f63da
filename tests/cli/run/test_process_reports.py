"""The sums of the reports of several processes, and their problems."""

import os
import threading

import pytest

from sharecons.cli.run import process_reports
from sharecons.cli.run.lifeline import Lifeline
from sharecons.cli.run.process_reports import ProcessReports
from sharecons.cli.run.report import Report, encode_report
from sharecons.metrics.families import MetricFamily
from tests.waiting import until_true

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="needs socketpair as standard input"),
]


class Process:
    """A process that has counted something, in a thread of this one."""

    def __init__(self, reports, index, count=0, held=0):
        self.live = None
        self.ready = None
        self.count = count
        self.held = held
        self.connection = reports.open(index)
        self.lifeline = Lifeline(self.connection, on_lost=lambda: None)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        # Without the signal that stops a process.
        while chunk := self.lifeline._receive():
            self.lifeline.report(int(chunk.split()[-1]))

    def start(self):
        self.lifeline.report_by(self._respond)
        self._thread.start()
        return self

    def _respond(self, number):
        families = [
            MetricFamily("done_total", "counter", "Done", (), {(): self.count}),
            MetricFamily("held", "gauge", "Held", (), {(): self.held}),
        ]
        return encode_report(Report(number, self.live, self.ready, families))

    def end(self):
        self.connection.shutdown(2)
        self._thread.join()
        self.connection.close()


@pytest.fixture
def reports():
    reports = ProcessReports(2)
    yield reports
    reports.close_all()


def values(reports):
    return {family.name: family.values[()] for family in reports.families()}


async def test_values_of_all_processes_are_added_up(reports):
    first = Process(reports, 0, count=3, held=1).start()
    second = Process(reports, 1, count=4, held=2).start()
    until_true(lambda: reports.ready() is None)

    expected = {"done_total": 7, "held": 3}
    found = values(reports)
    assert expected == {name: found[name] for name in expected}
    first.count = 10
    assert 14 == values(reports)["done_total"], "each scrape requests reports"
    first.end()
    second.end()


async def test_counts_of_an_ended_process_stay_and_its_gauges_leave(reports):
    first = Process(reports, 0, count=3, held=1).start()
    second = Process(reports, 1, count=4, held=2).start()
    until_true(lambda: reports.ready() is None)
    first.count = 5
    first.lifeline.report()
    first.end()
    await reports.close(0)

    found = values(reports)
    assert (9, 2) == (found["done_total"], found["held"])
    assert (1, 0) == (
        found["sharecons_run_processes"],
        found["sharecons_run_restarts_total"],
    )
    assert "process 0: it does not run" == reports.ready()

    again = Process(reports, 0, count=0).start()
    until_true(lambda: reports.ready() is None)
    assert 9 == values(reports)["done_total"]
    assert 1 == values(reports)["sharecons_run_restarts_total"]
    again.end()
    second.end()


async def test_process_that_is_not_started_again_is_not_missed(reports):
    first = Process(reports, 0).start()
    second = Process(reports, 1).start()
    first.end()
    await reports.close(0)
    reports.finish(0)

    until_true(lambda: reports.ready() is None)
    second.end()


async def test_problems_name_their_process(reports):
    first = Process(reports, 0).start()
    second = Process(reports, 1)
    until_true(lambda: reports.ready() == "process 1: it starts")
    assert reports.live() is None, "a process that starts is live"
    second.start()
    second.live, second.ready = "the event loop is blocked", "no heartbeat"

    until_true(lambda: reports.live() is not None)
    assert "process 1: the event loop is blocked" == reports.live()
    assert "process 1: no heartbeat" == reports.ready()
    first.end()
    second.end()


async def test_silent_process_keeps_its_values_and_is_not_live_after_a_while(
    monkeypatch,
):
    now = 100.0
    reports = ProcessReports(1, clock=lambda: now)
    monkeypatch.setattr(process_reports, "TIMEOUT", 0.05)
    process = Process(reports, 0, count=3)
    process.lifeline.report_by(process._respond)  # and it reads no request

    until_true(lambda: reports.ready() is None)
    assert 3 == values(reports)["done_total"]
    assert reports.live() is None
    now = 105.0
    assert "process 0: no response for 5 s" == reports.live()
    process.connection.close()
    reports.close_all()


async def test_cut_off_report_is_ignored(reports):
    process = Process(reports, 0, count=3).start()
    until_true(lambda: values(reports).get("done_total") == 3)
    process.connection.sendall(encode_report(Report(0, None, None, []))[:-5])
    process.end()
    await reports.close(0)

    assert 3 == values(reports)["done_total"]
