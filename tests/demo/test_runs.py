"""Whole runs of the demo on the embedded broker, with workers in processes."""

import argparse
import re
import signal
from functools import partial

import anyio
import pytest

from sharecons.cli import demo as command
from sharecons.demo.jobs import Jobs
from sharecons.demo.run import run_demo
from sharecons.demo.views import LineView
from sharecons.testing import EmbeddedBroker


def run_command(*arguments):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["demo", "--plain", *arguments])
    return options.run(options)


def run_on(kafka, *arguments):
    return run_command("--bootstrap-server", kafka.bootstrap_servers, *arguments)


def assert_is_empty(kafka):
    groups = [each.group_id for each in kafka.cluster.groups]
    assert not any(each.startswith("sharecons-demo-") for each in groups)
    assert [] == [each for each in kafka.cluster.topics if not each.internal]


@pytest.mark.slow("starts processes")
def test_demo_with_killed_worker_passes_check_and_deletes_topics(capsys):
    with EmbeddedBroker() as kafka:
        code = run_on(kafka, "--jobs", "15", "--consumers", "3")
        printed = capsys.readouterr()

        assert 0 == code, printed
        assert_is_empty(kafka)
    assert "" == printed.err
    killed = re.search(r"cleo +was killed while it had jobs: ([\d, ]+)", printed.out)
    for number in killed[1].split(", "):
        assert f"received job {number} again, delivery 2" in printed.out
    assert "wrote job 4 to the dead letters: failed after 3 attempts" in printed.out
    assert "redrove the dead letters: 4" in printed.out
    assert re.search(r"dead letters +1  job 4: failed after 3 attempts", printed.out)
    assert re.search(r"lag +0 ", printed.out)
    assert "Check passed: each job was done once" in printed.out


@pytest.mark.slow("starts processes")
def test_single_worker_passes_check_and_names_topic_that_cannot_be_deleted(capsys):
    with EmbeddedBroker() as kafka:
        kafka.faults.on("DeleteTopics").refuse("TOPIC_AUTHORIZATION_FAILED")
        code = run_on(kafka, "--jobs", "3", "--consumers", "1")
        topics = [each.name for each in kafka.cluster.topics if not each.internal]
    printed = capsys.readouterr()

    assert 0 == code, printed
    assert 2 == len(topics)
    for topic in topics:
        assert f"sharecons demo: {topic} could not be deleted: " in printed.err


@pytest.mark.slow("starts processes")
def test_signal_ends_demo_and_deletes_topics(capsys):
    with EmbeddedBroker() as kafka:

        def interrupt(response, context):
            signal.raise_signal(signal.SIGINT)
            return response

        kafka.faults.on("ShareFetch", after=5).change(interrupt)
        code = run_on(kafka, "--jobs", "400")

        assert 130 == code
        assert_is_empty(kafka)
    assert "" == capsys.readouterr().err


@pytest.mark.slow("starts processes")
def test_demo_without_reports_ends_with_failed_check():
    lines, errors = [], []
    with EmbeddedBroker() as kafka:
        kafka.faults.on("ShareFetch", times=None).refuse("UNKNOWN_TOPIC_ID", each=True)
        view = LineView("title", lines.append)
        servers, jobs = kafka.bootstrap_servers, Jobs(3, ["ada"])
        run = partial(run_demo, jobs, servers, view, errors.append, idle_seconds=1.5)

        assert not anyio.run(run)
    assert ["Check failed:", "  not done: 1, 2, 3"] == lines[-2:]
    assert [] == errors


@pytest.mark.slow("starts processes")
@pytest.mark.parametrize("api", ["Produce", "ShareGroupHeartbeat"])
def test_rejected_request_ends_demo_with_one_error_line(api, capsys):
    code = {"Produce": "TOPIC", "ShareGroupHeartbeat": "GROUP"}[api]
    with EmbeddedBroker() as kafka:
        kafka.faults.on(api, times=None).refuse(f"{code}_AUTHORIZATION_FAILED")
        ended = run_on(kafka)
    printed = capsys.readouterr()

    assert 4 == ended
    assert 1 == printed.err.count("\n")
    assert f"{code}_AUTHORIZATION_FAILED" in printed.err


@pytest.mark.slow("waits for a connection")
def test_unreachable_broker_is_one_error_line(capsys):
    code = run_command("--bootstrap-server", "127.0.0.1:1")
    printed = capsys.readouterr()

    assert 3 == code
    assert "" == printed.out
    assert 1 == printed.err.count("\n")
    assert printed.err.startswith("sharecons demo: no broker responded")
    assert "127.0.0.1:1" in printed.err


@pytest.mark.parametrize("wrong", [("--jobs", "0"), ("--consumers", "9")])
def test_invalid_options_are_usage_errors(wrong, capsys):
    with pytest.raises(SystemExit) as raised:
        run_command(*wrong)

    assert 2 == raised.value.code
    assert wrong[0] in capsys.readouterr().err
