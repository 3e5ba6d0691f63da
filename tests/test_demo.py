"""The demo: its job tracker, its views, and whole runs on the embedded broker."""

import argparse
import io
import signal
from contextlib import contextmanager
from functools import partial
from random import Random

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sharecons.cli import demo as command
from sharecons.demo.clock import DemoClock
from sharecons.demo.environment import Environment
from sharecons.demo.job_tracker import (
    DELIVERY_LIMIT,
    EventKind,
    JobState,
    JobTracker,
    RedeliveryReason,
)
from sharecons.demo.messages import closing_lines, describe_event, summary_rows
from sharecons.demo.plan import MAX_DELIVERIES, Decision, Plan
from sharecons.demo.runner import run_demo
from sharecons.demo.screen import draw_progress, draw_summary
from sharecons.demo.text_view import TextView
from sharecons.demo.worker import Worker
from sharecons.testing import EmbeddedBroker, virtual_time

ACCEPT, RELEASE, REJECT = Decision.ACCEPT, Decision.RELEASE, Decision.REJECT


def new_tracker(jobs, *names):
    tracker = JobTracker(names or ("ada", "bob"), expected=jobs)
    tracker.on_produced(range(1, jobs + 1))
    return tracker


def complete(tracker, job, who, count=1, verdict=ACCEPT):
    tracker.on_delivered(job, who, count, now=1.0)
    tracker.on_acknowledged(job, who, verdict, now=2.0)
    tracker.on_ack_confirmed(job, who, verdict, now=3.0)


# The job tracker.


def test_job_is_done_once_broker_confirms():
    tracker = new_tracker(1)
    tracker.on_delivered(1, "ada", 1, now=1.0)
    tracker.on_acknowledged(1, "ada", ACCEPT, now=2.0)

    assert not tracker.is_finished
    assert not tracker.is_confirmed("ada")
    assert ["neither accepted nor rejected: job 1"] == tracker.discrepancies()

    tracker.on_ack_confirmed(1, "ada", ACCEPT, now=3.0)

    assert tracker.is_finished
    assert tracker.is_confirmed("ada")
    assert [] == tracker.discrepancies()


def test_released_job_is_redelivered_with_reason():
    tracker = new_tracker(1)
    complete(tracker, 1, "bob", verdict=RELEASE)
    complete(tracker, 1, "ada", count=2)

    assert [] == tracker.discrepancies()
    assert 1 == tracker.totals().redelivered
    assert 1 == tracker.totals().reasons[RedeliveryReason.RELEASED]
    assert (1, 0) == (
        tracker.consumers["bob"].released,
        tracker.consumers["bob"].redelivered,
    )
    assert (0, 1) == (
        tracker.consumers["ada"].released,
        tracker.consumers["ada"].redelivered,
    )


def test_redelivery_without_reason_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "bob", verdict=RELEASE)
    complete(tracker, 1, "ada", count=3)

    assert ["delivery count without matching reasons: job 1"] == tracker.discrepancies()


def test_release_without_redelivery_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "bob", verdict=RELEASE)
    complete(tracker, 1, "ada", count=1)

    assert ["delivery count without matching reasons: job 1"] == tracker.discrepancies()


def test_job_accepted_twice_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "ada")
    complete(tracker, 1, "bob")

    assert 1 == tracker.totals().accepted_twice
    assert "job 1 was delivered to bob after it was accepted" in tracker.discrepancies()
    assert "accepted more than once: job 1" in tracker.discrepancies()


def test_undelivered_jobs_are_listed_by_number():
    tracker = new_tracker(12)
    complete(tracker, 3, "ada")

    numbers = "1, 2, 4, 5, 6, 7, 8, 9, 10, 11"

    assert [
        f"neither accepted nor rejected: jobs {numbers} and 1 more"
    ] == tracker.discrepancies()


def test_jobs_never_produced_are_discrepancy():
    tracker = JobTracker(("ada",), expected=2)
    complete(tracker, 1, "ada")

    assert not tracker.is_finished
    assert ["jobs seen: 1 instead of 2"] == tracker.discrepancies()


def test_jobs_of_killed_consumer_are_redelivered_with_reason():
    tracker = new_tracker(2)
    tracker.on_delivered(1, "bob", 1, now=1.0)
    tracker.on_delivered(2, "bob", 1, now=1.0)
    tracker.on_killed("bob", now=2.0)

    assert [] == tracker.consumers["bob"].acquired
    assert 2 == tracker.count(JobState.WAITING)

    complete(tracker, 1, "ada", count=2)
    complete(tracker, 2, "ada", count=2)

    assert [] == tracker.discrepancies()
    assert 2 == tracker.totals().reasons[RedeliveryReason.KILLED]
    assert [
        "was killed with jobs 1 and 2 in progress",
        "received job 1, delivery 2: bob was killed",
        "received job 2, delivery 2: bob was killed",
    ] == [describe_event(event) for event in tracker.events]


def test_jobs_prefetched_by_killed_consumer_count_once():
    tracker = new_tracker(2)
    tracker.on_killed("bob", now=2.0)
    complete(tracker, 1, "ada", count=2)
    complete(tracker, 2, "ada", count=3)

    assert 2 == tracker.totals().reasons[RedeliveryReason.PREFETCHED]
    assert ["delivery count without matching reasons: job 2"] == tracker.discrepancies()


def test_unexplained_redelivery_without_killed_consumer_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "ada", count=2)

    assert ["delivery count without matching reasons: job 1"] == tracker.discrepancies()


def test_consumer_killed_at_start_explains_redelivery():
    tracker = new_tracker(1)
    tracker.on_killed("bob", now=0.0)
    complete(tracker, 1, "ada", count=2)

    assert [] == tracker.discrepancies()


def test_acceptance_after_lock_expired_counts_for_next_consumer():
    tracker = new_tracker(1)
    tracker.on_delivered(1, "ada", 1, now=1.0)
    tracker.on_acknowledged(1, "ada", ACCEPT, now=9.0)
    tracker.on_ack_rejected(1, "ada", ACCEPT, now=9.1)
    complete(tracker, 1, "bob", count=2)

    assert [] == tracker.discrepancies()
    assert 1 == tracker.totals().reasons[RedeliveryReason.LOCK_EXPIRED]
    assert 0 == tracker.consumers["ada"].accepted


def test_job_delivered_to_other_consumer_had_expired_lock():
    tracker = new_tracker(1)
    tracker.on_delivered(1, "ada", 1, now=1.0)
    tracker.on_delivered(1, "bob", 2, now=9.0)
    tracker.on_lock_expired(1, "ada", now=9.5)
    tracker.on_acknowledged(1, "bob", ACCEPT, now=9.6)
    tracker.on_ack_confirmed(1, "bob", ACCEPT, now=9.7)

    assert [] == tracker.discrepancies()
    assert [EventKind.LOCK_EXPIRED, EventKind.REDELIVERED] == [
        event.kind for event in tracker.events
    ]


def test_late_release_counts_as_expired_lock():
    tracker = new_tracker(1)
    tracker.on_delivered(1, "ada", 1, now=1.0)
    tracker.on_acknowledged(1, "ada", RELEASE, now=9.0)
    tracker.on_delivered(1, "bob", 2, now=9.0)
    tracker.on_ack_rejected(1, "ada", RELEASE, now=9.1)
    tracker.on_acknowledged(1, "bob", ACCEPT, now=9.2)
    tracker.on_ack_confirmed(1, "bob", ACCEPT, now=9.3)

    assert [] == tracker.discrepancies()
    assert {RedeliveryReason.LOCK_EXPIRED: 1} == {
        w: n for w, n in tracker.totals().reasons.items() if n
    }


def test_job_at_delivery_limit_is_archived():
    tracker = new_tracker(2)
    for count in range(1, DELIVERY_LIMIT + 1):
        complete(tracker, 1, "bob", count, RELEASE)
    for count in range(1, DELIVERY_LIMIT):
        complete(tracker, 2, "bob", count, RELEASE)
    tracker.on_delivered(2, "bob", DELIVERY_LIMIT, now=4.0)
    tracker.on_killed("bob", now=5.0)

    assert tracker.is_finished
    assert [] == tracker.discrepancies()
    assert 2 == tracker.totals().archived
    assert 2 * (DELIVERY_LIMIT - 1) == tracker.totals().redelivered


def test_job_may_be_delivered_before_produce_response():
    tracker = JobTracker(("ada",), expected=1)
    complete(tracker, 1, "ada")
    tracker.on_produced([1])

    assert tracker.is_finished
    assert [] == tracker.discrepancies()


@given(st.integers(0, 1 << 30))
def test_any_history_of_correct_broker_has_no_discrepancies(seed):
    """Random deliveries, acknowledgements and killed consumers."""
    chance = Random(seed)
    tracker = new_tracker(5, "ada", "bob", "cleo")
    queue = [(job, 1) for job in range(1, 6)]
    alive, held = ["ada", "bob", "cleo"], []
    while queue or held:
        action = chance.choices(["take", "say", "kill"], [5, 5, 1])[0]
        if action == "take" and queue:
            job, count = queue.pop(chance.randrange(len(queue)))
            who = chance.choice(alive)
            tracker.on_delivered(job, who, count, now=1.0)
            held.append((job, count, who))
        elif action == "say" and held:
            job, count, who = held.pop(chance.randrange(len(held)))
            verdict = chance.choice([RELEASE, RELEASE, ACCEPT, REJECT])
            tracker.on_acknowledged(job, who, verdict, now=2.0)
            tracker.on_ack_confirmed(job, who, verdict, now=3.0)
            if verdict is RELEASE and count < DELIVERY_LIMIT:
                queue.append((job, count + 1))
        elif action == "kill" and len(alive) > 1:
            who = alive.pop(chance.randrange(len(alive)))
            tracker.on_killed(who, now=4.0)
            lost = [(job, count + 1) for job, count, whose in held if whose == who]
            queue += [(job, count) for job, count in lost if count <= DELIVERY_LIMIT]
            held = [each for each in held if each[2] != who]

    assert tracker.is_finished
    assert [] == tracker.discrepancies()
    sums = tracker.totals()
    assert sums.produced == sums.accepted + len(sums.rejected) + sums.archived
    assert sums.redelivered == sum(sums.reasons.values()) - sums.archived


def test_lag_at_broker_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "ada")
    tracker.set_lag(0)

    assert [] == tracker.discrepancies()

    tracker.set_lag(3)

    assert ["lag at the broker: 3"] == tracker.discrepancies()


# The plan.


def test_same_seed_gives_same_durations():
    one, same, other = (Plan(seed=seed) for seed in (7, 7, 8))

    def fares(plan):
        return [plan.duration("ada", job, 1) for job in range(1, 9)]

    assert fares(one) == fares(same)
    assert fares(one) != fares(other)


@pytest.mark.parametrize("consumers", [1, 2, 3, 4, 12])
def test_consumer_names_are_unique_and_failing_consumer_is_not_killed(consumers):
    plan = Plan(consumers=consumers)

    assert consumers == len(set(plan.names))
    assert plan.failing_consumer in plan.names
    assert plan.killed_consumer != plan.failing_consumer
    assert (plan.killed_consumer in plan.names) == (consumers > 1)


@pytest.mark.parametrize("jobs", [1, 2, 10, 240])
def test_poison_job_is_rejected_at_last_delivery(jobs):
    plan = Plan(jobs=jobs)
    decisions = [
        plan.decide("ada", plan.poison_job, n) for n in range(1, MAX_DELIVERIES + 1)
    ]

    assert 1 <= plan.poison_job <= jobs
    assert [RELEASE] * (MAX_DELIVERIES - 1) + [REJECT] == decisions


def test_only_failing_consumer_fails_and_never_at_last_delivery():
    plan = Plan()
    jobs = [job for job in range(1, 241) if job != plan.poison_job]
    failing = {
        who: sum(plan.decide(who, job, 1) is RELEASE for job in jobs)
        for who in plan.names
    }

    assert 30 < failing.pop(plan.failing_consumer) < 90
    assert {0} == set(failing.values())
    assert {ACCEPT} == {
        plan.decide(plan.failing_consumer, job, MAX_DELIVERIES) for job in jobs
    }


# The views.


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


@pytest.mark.parametrize("fate", JobState)
def test_bar_fills_width_in_every_state(fate):
    tracker = new_tracker(3)
    for job in range(1, 4):
        tracker._set_state(tracker.jobs[job], fate)
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


# Killed workers.


class ScriptedTask:
    """A record for a worker that notes its acknowledgements."""

    value, offset, delivery_count = b"job 1", 0, 1

    def __init__(self):
        self.said = []

    def accept(self):
        self.said.append("accept")


def new_worker(tracker, plan):
    place = Environment("localhost:1", "topic", "group", None)
    return Worker("ada", plan, place, tracker, DemoClock())


@pytest.mark.anyio
async def test_killed_worker_ignores_later_records():
    tracker, task = new_tracker(1), ScriptedTask()
    worker = new_worker(tracker, Plan(jobs=1, consumers=1, seconds=1))
    worker.kill()
    await worker._work(task)

    assert [] == tracker.consumers["ada"].acquired
    assert [] == task.said


@pytest.mark.anyio
@pytest.mark.parametrize(
    "anyio_backend", [virtual_time.backend(name) for name in virtual_time.BACKENDS]
)
async def test_killed_worker_does_not_acknowledge_finished_job():
    tracker, task = new_tracker(1), ScriptedTask()
    worker = new_worker(tracker, Plan(jobs=1000, consumers=1, seconds=1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker._work, task)
        while not tracker.consumers["ada"].acquired:
            await checkpoint()  # time stands still
        worker.kill()

    assert [] == task.said
    assert [(1, "ada")] == [(event.jobs[0], event.consumer) for event in tracker.events]
    assert 1 == tracker.totals().reasons[RedeliveryReason.KILLED]


# Whole runs.


def options(*arguments):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    return parser.parse_args(["demo", *arguments])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_demo_passes_check_on_embedded_broker(backend, capsys):
    given = ("--plain", "--jobs", "60", "--seconds", "3", "--backend", backend)
    chosen = options(*given)
    code = chosen.run(chosen)
    said = capsys.readouterr().out

    assert 0 == code, said
    assert "produced          60  = 59 accepted + 1 rejected" in said
    assert "cleo   was killed with jobs " in said
    assert ": cleo was killed" in said
    assert "bob released it" in said
    assert "accepted twice     0" in said
    assert "lag                0" in said
    assert "Check passed" in said


@pytest.mark.slow
@pytest.mark.parametrize("consumers", ["1", "2"])
def test_demo_passes_check_with_few_consumers(consumers, capsys):
    chosen = options(
        "--plain", "--jobs", "12", "--seconds", "1", "--consumers", consumers
    )
    code = chosen.run(chosen)

    assert 0 == code, capsys.readouterr().out


@contextmanager
def finished_demo(plan, *, patience=30.0, on_line=lambda kafka, line: None, **settings):
    """Yield the result of a demo and its lines while the broker still runs."""
    said = []
    settings = {name.replace("_", "."): value for name, value in settings.items()}
    with EmbeddedBroker(settings=settings) as kafka:

        def write(line):
            said.append(line)
            on_line(kafka, line)

        run = partial(run_demo, idle_timeout=patience)
        where = kafka.bootstrap_servers
        yield anyio.run(run, plan, where, TextView(write), said.append), said


@pytest.mark.parametrize(("lowest", "taken"), [("1000", "5000"), ("15000", "15000")])
@pytest.mark.slow
def test_lock_duration_is_as_short_as_broker_allows(lowest, taken):
    seen = set()

    def look(kafka, line):
        for group in kafka.cluster.groups:
            name = "share.record.lock.duration.ms"
            seen.add(kafka.cluster.configs.group_value(group.group_id, name))

    settings = {"group_share_min_record_lock_duration_ms": lowest}
    with finished_demo(Plan(jobs=12, seconds=1), on_line=look, **settings) as (
        outcome,
        _,
    ):
        assert [] == outcome.tracker.discrepancies()
        assert {taken} == seen


@pytest.mark.slow
def test_idle_timeout_ends_demo_with_discrepancies():
    def refuse(kafka, line):
        if not kafka.faults.active:
            kafka.faults.on("Produce", times=None).stall()

    with finished_demo(Plan(seconds=1), patience=2.0, on_line=refuse) as (
        outcome,
        said,
    ):
        assert not outcome.interrupted
        assert not outcome.tracker.is_finished
        assert "Check failed:" in said


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_signal_interrupts_demo(signal_number):
    def interrupt(kafka, line):
        if " failed to process " in line:
            signal.raise_signal(signal_number)

    with finished_demo(Plan(seconds=20), on_line=interrupt) as (outcome, said):
        assert outcome.interrupted
        assert outcome.tracker.done_count < 100
        assert said[-1].startswith("Interrupted after ")


def run_command(kafka, *arguments):
    chosen = options(
        "--plain", "--bootstrap-server", kafka.bootstrap_servers, *arguments
    )
    return chosen.run(chosen)


def test_broker_without_share_groups_is_one_error_line(capsys):
    def old(request, context):
        served = [(3, 12, 12), (10, 4, 4), (32, 4, 4)]
        keys = ("api_key", "min_version", "max_version")
        return {"api_keys": [dict(zip(keys, each, strict=True)) for each in served]}

    with EmbeddedBroker() as kafka:
        kafka.faults.on("ApiVersions", times=None).respond(old)
        code = run_command(kafka)
    said = capsys.readouterr()

    assert 2 == code
    assert "" == said.out
    assert 1 == said.err.count("\n")
    assert "does not support ShareGroupHeartbeat" in said.err


def test_error_while_running_is_one_error_line(capsys):
    with EmbeddedBroker() as kafka:
        kafka.faults.on("Produce", after=2).refuse("TOPIC_AUTHORIZATION_FAILED")
        code = run_command(kafka, "--seconds", "5")
    said = capsys.readouterr()

    assert 2 == code
    assert 1 == said.err.count("\n")
    assert "TOPIC_AUTHORIZATION_FAILED" in said.err


@pytest.mark.slow
def test_topic_that_cannot_be_deleted_is_named(capsys):
    with EmbeddedBroker() as kafka:
        kafka.faults.on("DeleteTopics").refuse("TOPIC_AUTHORIZATION_FAILED")
        code = run_command(kafka, "--jobs", "12", "--seconds", "1")
        (topic,) = (topic for topic in kafka.cluster.topics if not topic.internal)

    assert 0 == code
    said = f"sharecons demo: topic {topic.name} could not be deleted\n"
    assert said == capsys.readouterr().err


@pytest.mark.slow
def test_demo_deletes_its_group_and_topic():
    with EmbeddedBroker() as kafka:
        run_command(kafka, "--jobs", "20", "--seconds", "1")

        assert [] == list(kafka.cluster.groups)
        assert [] == [topic for topic in kafka.cluster.topics if not topic.internal]


def test_unreachable_broker_is_one_error_line(capsys):
    chosen = options("--bootstrap-server", "127.0.0.1:1", "--plain")
    code = chosen.run(chosen)
    said = capsys.readouterr()

    assert 2 == code
    assert "" == said.out
    assert 1 == said.err.count("\n")
    assert said.err.startswith("sharecons demo: no broker responded")
    assert "127.0.0.1:1" in said.err


@pytest.mark.parametrize(
    "wrong", [("--jobs", "0"), ("--seconds", "0.5"), ("--consumers", "none")]
)
def test_invalid_options_are_usage_errors(wrong, capsys):
    with pytest.raises(SystemExit) as raised:
        options(*wrong)

    assert 2 == raised.value.code
    assert wrong[0] in capsys.readouterr().err
