"""Calls in threads that are cancelled before, while and after the function runs."""

import traceback

import anyio
import pytest

from sharecons.worker.threads import AbandonedThread, ThreadCalls


@pytest.mark.anyio
async def test_call_that_is_cancelled_before_its_thread_starts_abandons_none() -> None:
    called: list[str] = []
    calls = ThreadCalls(called.append)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await calls("a")

    assert scope.cancelled_caught
    assert [] == called
    assert not calls.abandoned


def test_thread_that_has_ended_when_its_call_is_cancelled_is_not_abandoned() -> None:
    called: list[str] = []
    thread = AbandonedThread(called.append, "a", 0.0)
    thread.run()

    assert not thread.abandon(lambda: None)
    assert ["a"] == called


def test_thread_that_is_abandoned_while_the_function_runs_reports_its_end() -> None:
    events: list[str] = []

    def abandon(argument: str) -> None:
        assert thread.abandon(lambda: events.append("end"))
        events.append(argument)

    thread = AbandonedThread(abandon, "a", 0.0)
    thread.run()

    assert ["a", "end"] == events


def test_thread_that_is_abandoned_as_it_starts_reports_its_end() -> None:
    """Otherwise it would take one of the worker's slots for ever."""
    events: list[str] = []
    thread = AbandonedThread(events.append, "a", 0.0)
    thread.abandon(lambda: events.append("end"))
    thread.run()

    assert ["end"] == events


def test_traceback_of_a_thread_begins_with_its_function_at_any_depth() -> None:
    frames: list[str] = []

    def hang(argument: str) -> None:
        wait(20)

    def wait(depth: int) -> None:
        if depth:
            wait(depth - 1)
        else:
            frames.extend(f.name for f in traceback.extract_tb(thread.traceback()))

    thread = AbandonedThread(hang, "a", 0.0)
    thread.run()

    assert ["hang", *["wait"] * 21] == frames[:22]
