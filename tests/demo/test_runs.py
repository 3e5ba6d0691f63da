"""Whole runs of the demo on the embedded broker."""

import argparse
import signal
from contextlib import contextmanager
from functools import partial

import anyio
import pytest

from sharecons.cli import demo as command
from sharecons.demo.plan import Plan
from sharecons.demo.runner import run_demo
from sharecons.demo.text_view import TextView
from sharecons.testing import EmbeddedBroker


def options(*arguments):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    return parser.parse_args(["demo", *arguments])


@pytest.mark.slow("a whole run")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_demo_passes_check_on_embedded_broker(backend, capsys, caplog):
    given = ("--plain", "--jobs", "60", "--seconds", "3", "--backend", backend)
    chosen = options(*given)
    code = chosen.run(chosen)
    printed = capsys.readouterr().out

    assert 0 == code, printed
    assert "produced          60  = 59 accepted + 1 rejected" in printed
    assert "cleo   was killed with jobs " in printed
    assert ": cleo was killed" in printed
    assert "bob released it" in printed
    assert "accepted twice     0" in printed
    assert "lag                0" in printed
    assert "Check passed" in printed
    # The view shows the killed consumer; a log line would tear it.
    assert "locks lost" not in caplog.text


@pytest.mark.slow("a whole run")
@pytest.mark.parametrize("consumers", ["1", "2"])
def test_demo_passes_check_with_few_consumers(consumers, capsys):
    chosen = options(
        "--plain", "--jobs", "12", "--seconds", "1", "--consumers", consumers
    )
    code = chosen.run(chosen)

    assert 0 == code, capsys.readouterr().out


@contextmanager
def finished_demo(
    plan, *, idle_timeout=30.0, on_line=lambda kafka, line: None, **settings
):
    """Yield the result of a demo and its lines while the broker still runs."""
    lines = []
    settings = {name.replace("_", "."): value for name, value in settings.items()}
    with EmbeddedBroker(settings=settings) as kafka:

        def write(line):
            lines.append(line)
            on_line(kafka, line)

        run = partial(run_demo, idle_timeout=idle_timeout)
        where = kafka.bootstrap_servers
        yield anyio.run(run, plan, where, TextView(write), lines.append), lines


@pytest.mark.parametrize(
    ("minimum", "expected"), [("1000", "5000"), ("15000", "15000")]
)
@pytest.mark.slow("a whole run")
def test_lock_duration_is_as_short_as_broker_allows(minimum, expected):
    durations = set()

    def read_duration(kafka, line):
        for group in kafka.cluster.groups:
            name = "share.record.lock.duration.ms"
            durations.add(kafka.cluster.configs.group_value(group.group_id, name))

    settings = {"group_share_min_record_lock_duration_ms": minimum}
    with finished_demo(Plan(jobs=12, seconds=1), on_line=read_duration, **settings) as (
        outcome,
        _,
    ):
        assert [] == outcome.tracker.discrepancies()
        assert {expected} == durations


@pytest.mark.slow("a whole run")
def test_idle_timeout_ends_demo_with_discrepancies():
    def stall(kafka, line):
        if not kafka.faults.active:
            kafka.faults.on("Produce", times=None).stall()

    with finished_demo(Plan(seconds=1), idle_timeout=2.0, on_line=stall) as (
        outcome,
        lines,
    ):
        assert not outcome.interrupted
        assert not outcome.tracker.is_finished
        assert "Check failed:" in lines


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow("a whole run")
def test_signal_interrupts_demo(signal_number, caplog):
    failures = []

    def interrupt(kafka, line):
        if " failed to process " in line:
            failures.append(line)
            if len(failures) == 1:
                signal.raise_signal(signal_number)

    with finished_demo(Plan(seconds=20), on_line=interrupt) as (outcome, lines):
        assert outcome.interrupted
        # Jobs that the end releases have not failed.
        attempts = [text for text in caplog.messages if "attempt failed" in text]
        assert len(failures) == len(attempts) >= 1
        assert outcome.tracker.done_count < 100
        assert lines[-1].startswith("Interrupted after ")


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
    printed = capsys.readouterr()

    assert 5 == code
    assert "" == printed.out
    assert 1 == printed.err.count("\n")
    assert "does not support ShareGroupHeartbeat" in printed.err


@pytest.mark.slow("a whole run")
def test_error_while_running_is_one_error_line(capsys):
    with EmbeddedBroker() as kafka:
        kafka.faults.on("Produce", after=2).refuse("TOPIC_AUTHORIZATION_FAILED")
        code = run_command(kafka, "--seconds", "5")
    printed = capsys.readouterr()

    assert 4 == code
    assert 1 == printed.err.count("\n")
    assert "TOPIC_AUTHORIZATION_FAILED" in printed.err


@pytest.mark.slow("a whole run")
def test_topic_that_cannot_be_deleted_is_named(capsys):
    with EmbeddedBroker() as kafka:
        kafka.faults.on("DeleteTopics").refuse("TOPIC_AUTHORIZATION_FAILED")
        code = run_command(kafka, "--jobs", "12", "--seconds", "1")
        (topic,) = (topic for topic in kafka.cluster.topics if not topic.internal)

    assert 0 == code
    expected = f"sharecons demo: topic {topic.name} could not be deleted\n"
    assert expected == capsys.readouterr().err


@pytest.mark.slow("a whole run")
def test_demo_deletes_its_group_and_topic():
    with EmbeddedBroker() as kafka:
        run_command(kafka, "--jobs", "20", "--seconds", "1")

        assert [] == list(kafka.cluster.groups)
        assert [] == [topic for topic in kafka.cluster.topics if not topic.internal]


def test_unreachable_broker_is_one_error_line(capsys):
    chosen = options("--bootstrap-server", "127.0.0.1:1", "--plain")
    code = chosen.run(chosen)
    printed = capsys.readouterr()

    assert 3 == code
    assert "" == printed.out
    assert 1 == printed.err.count("\n")
    assert printed.err.startswith("sharecons demo: no broker responded")
    assert "127.0.0.1:1" in printed.err


@pytest.mark.parametrize(
    "wrong", [("--jobs", "0"), ("--seconds", "0.5"), ("--consumers", "none")]
)
def test_invalid_options_are_usage_errors(wrong, capsys):
    with pytest.raises(SystemExit) as raised:
        options(*wrong)

    assert 2 == raised.value.code
    assert wrong[0] in capsys.readouterr().err
