"""The counts of the demo, its check and its picture."""

import io

import pytest
from rich.console import Console

from sharecons.demo.jobs import Jobs, State
from sharecons.demo.views import draw

REASON = "failed after 3 attempts"


def complete(jobs, number, worker="ada", delivery=1):
    jobs.on_started(worker, 1.0, number, 1, delivery)
    jobs.on_done(worker, 2.0, number)


def new_jobs(total, *, done=()):
    jobs = Jobs(total, ("ada", "bob", "cleo"))
    for number in done:
        complete(jobs, number)
    return jobs


def test_jobs_done_once_pass_check():
    jobs = new_jobs(2, done=[1, 2])

    assert not jobs.is_busy
    assert [] == jobs.problems({})


def test_job_not_done_and_job_done_twice_are_problems():
    jobs = new_jobs(3, done=[1, 2])
    complete(jobs, 2, "bob", delivery=2)

    assert ["not done: 3", "done more than once: 2"] == jobs.problems({})


def test_lag_at_broker_is_problem():
    jobs = new_jobs(1, done=[1])
    jobs.lag = 3

    assert ["lag at the broker: 3"] == jobs.problems({})


def test_redriven_dead_letter_passes_check():
    jobs = new_jobs(1)
    jobs.on_started("ada", 1.0, 1, 3, 1)
    jobs.on_dead("ada", 1.0, 1, REASON)
    assert not jobs.is_busy
    jobs.on_redriven(2.0)
    assert jobs.is_busy
    complete(jobs, 1, "bob")

    assert [] == jobs.problems({1: REASON})


@pytest.mark.parametrize("letters", [{}, {1: "other"}, {1: REASON, 2: REASON}])
def test_dead_letters_that_differ_from_reports_are_problem(letters):
    jobs = new_jobs(2, done=[1, 2])
    jobs.by_number[1].reason = REASON
    (problem,) = jobs.problems(letters)

    assert "dead letter missing" in problem


def test_jobs_of_killed_worker_wait_until_they_are_received_again():
    jobs = new_jobs(2)
    for number in (1, 2):
        jobs.on_started("cleo", 1.0, number, 1, 1)
    jobs.on_killed("cleo", 2.0)

    assert 2 == jobs.count()[State.WAITING]
    assert [] == jobs.workers["cleo"].jobs

    complete(jobs, 1, "ada", delivery=2)

    assert [
        "was killed while it had jobs: 1, 2",
        "received job 1 again, delivery 2",
    ] == [event.what for event in jobs.events]


def render(jobs, width):
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(draw(jobs, 4.1, "here", width, 24))
    return console.export_text()


@pytest.mark.parametrize("width", [80, 110])
def test_picture_shows_jobs_and_workers_within_width(width):
    jobs = new_jobs(60, done=range(1, 20))
    jobs.on_started("ada", 3.0, 20, 1, 1)
    jobs.on_started("bob", 3.0, 22, 1, 1)
    jobs.on_failed("bob", 4.0, 22, "ServiceUnavailable")
    jobs.on_started("cleo", 3.5, 21, 1, 1)
    jobs.on_killed("cleo", 4.0)
    text = render(jobs, width)
    lines = text.splitlines()

    assert {True} == {len(line) <= width for line in lines}
    assert len(lines) <= 24
    for name, state, number in (
        ("ada", "working", "20"),
        ("bob", "failed", "22"),
        ("cleo", "killed", ""),
    ):
        assert any(
            f" {name} " in line and state in line and number in line for line in lines
        ), name
    assert "19 of 60" in text
    assert "was killed while it had jobs: 21" in text
    assert "…" not in text


def test_bar_fills_its_width_for_any_states():
    jobs = new_jobs(7, done=[1, 2])
    jobs.on_started("ada", 1.0, 3, 1, 1)
    jobs.on_dead("ada", 1.0, 4, REASON)
    (bar,) = (line for line in render(jobs, 80).splitlines() if "2 of 7" in line)

    assert 76 - len("    2 of 7") == bar.count("█")
