"""The views of the demo."""

import io

import pytest
from rich.console import Console

from sharecons.demo.job_tracker import (
    DELIVERY_LIMIT,
    JobState,
)
from sharecons.demo.messages import closing_lines, summary_rows
from sharecons.demo.screen import draw_progress, draw_summary
from tests.demo.tracking import ACCEPT, REJECT, RELEASE, complete, new_tracker


def unfinished_tracker():
    tracker = new_tracker(40, "ada", "bob", "cleo", "dan")
    tracker.expected = 60
    for job in range(1, 20):
        complete(tracker, job, ("ada", "dan")[job % 2])
    complete(tracker, 20, "bob", verdict=RELEASE)
    tracker.on_delivered(20, "ada", 2, now=3.5)
    tracker.on_delivered(21, "cleo", 1, now=3.5)
    tracker.on_killed("cleo", now=4.0)
    return tracker


def render(what, width):
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(what)
    return console.export_text()


@pytest.mark.parametrize("width", [80, 110])
def test_live_view_shows_consumers_within_width(width):
    text = render(draw_progress(unfinished_tracker(), 4.1, "here", width), width)
    lines = text.splitlines()

    assert {True} == {len(line) <= width for line in lines}
    assert len(lines) <= 24
    (ada,) = (line for line in lines if "ada" in line and "working" in line)
    assert "20\N{MULTIPLICATION SIGN}2" in ada
    assert any("bob" in line and "failed" in line for line in lines)
    assert any("cleo" in line and "killed" in line for line in lines)
    assert "19 of 60" in text
    assert "to send 20" in text
    assert "was killed with job 21 in progress" in text
    assert "…" not in text


def bring_to(state, tracker, job):
    """Report the events after which a job has the state."""
    match state:
        case JobState.ACQUIRED:
            tracker.on_delivered(job, "ada", 1, now=1.0)
        case JobState.UNCONFIRMED:
            tracker.on_delivered(job, "ada", 1, now=1.0)
            tracker.on_acknowledged(job, "ada", ACCEPT, now=2.0)
        case JobState.ACCEPTED:
            complete(tracker, job, "ada")
        case JobState.REJECTED:
            complete(tracker, job, "ada", verdict=REJECT)
        case JobState.ARCHIVED:
            for count in range(1, DELIVERY_LIMIT + 1):
                complete(tracker, job, "ada", count, RELEASE)


@pytest.mark.parametrize("state", JobState)
def test_bar_fills_width_in_every_state(state):
    tracker = new_tracker(3)
    for job in range(1, 4):
        bring_to(state, tracker, job)
    assert 3 == tracker.count(state)
    text = render(draw_progress(tracker, 1.0, "here", 80), 80)
    (bar,) = (line for line in text.splitlines() if "of 3" in line)

    assert 76 == len(bar.strip("│ ")) + bar.count("  " * 38)


def test_summary_lists_discrepancies():
    tracker = new_tracker(2)
    complete(tracker, 1, "ada", verdict=REJECT)
    text = render(draw_summary(tracker, 9.0, 80, interrupted=False), 80)

    assert "= 0 accepted + 1 rejected (job 1) + 1 unfinished" in text
    assert "Check failed:" in text
    assert "neither accepted nor rejected: job 2" in text


def test_interrupted_demo_reports_no_discrepancies():
    tracker = new_tracker(2)

    assert ["Interrupted after 3.0 s; unfinished jobs were released."] == closing_lines(
        tracker, 3.0, interrupted=True
    )


def test_summary_lists_redelivery_reasons():
    tracker = unfinished_tracker()
    complete(tracker, 21, "dan", count=2)
    rows = {
        what: (number, made_of)
        for what, number, made_of in summary_rows(tracker.totals())
    }

    assert (40, "= 20 accepted + 0 rejected + 20 unfinished") == rows["produced"]
    assert (23, "= 21 first deliveries + 2 redeliveries") == rows["delivered"]
    assert (2, "= 1 released + 1 after a consumer was killed") == rows["redelivered"]
