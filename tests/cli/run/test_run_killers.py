"""A record that ends its process, with default settings and two processes."""

import json
import os
from functools import partial

import anyio
import pytest

from tests.cli.run.running import new_broker, running
from tests.scenarios.dead_letter_setup import Setup
from tests.waiting import until_true

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals"),
    pytest.mark.slow("starts processes again and again", seconds=60),
]

APP = """
import os
import anyio

async def handle(record):
    if record.offset == 5:
        os._exit(9)
    await anyio.sleep(0.3)  # real time: neighbours run when the process ends
    with open(os.environ["APP_LOG"], "a") as log:
        log.write(f"end {os.getpid()} {record.offset} {record.delivery_count}\\n")
"""


def test_record_that_ends_its_process_is_a_dead_letter_and_neighbours_are_done(
    any_kafka, tmp_path
):
    setup = Setup(any_kafka.admin)
    names = {"topic": setup.queue.topic, "group": setup.queue.group}
    setup.queue.produce([b"x"] * 10)
    options = ("--processes", "2", "--dead-letter", setup.dead)
    with running(
        any_kafka, tmp_path, "app:handle", *options, app=APP, **names
    ) as command:
        until_true(lambda: anyio.run(setup.letters), 60.0, pause=0.5)
        anyio.run(partial(setup.wait_until_settled, within=40.0))
        assert 0 == command.stop()

        (origin,) = anyio.run(setup.origins)
        assert 5 == origin.offset
        done = {offset for _, offset, _ in command.entries("end")}
        assert {0, 1, 2, 3, 4, 6, 7, 8, 9} == done
        crashes = crashes_of(command)
        assert 4 == len(crashes)
        assert all(f"{setup.queue.topic}-0@5 (" in each["records"] for each in crashes)


KILLERS = """
import os, signal, threading
from sharecons import BatchHandler

async def end(record):
    os.kill(os.getpid(), signal.SIGSEGV)

def end_in_thread(record):
    os.kill(os.getpid(), signal.SIGKILL)

def end_in_batch(records):
    os.abort()

batches = BatchHandler(end_in_batch, max_records=100, max_wait=5.0)

def hang(record):
    threading.Event().wait()
"""


def crashes_of(command):
    """Return the events about processes that died while they called handlers."""
    lines = [each for each in command.stderr.splitlines() if each.startswith("{")]
    return [
        each for each in map(json.loads, lines) if "while handlers" in each["event"]
    ]


@pytest.mark.parametrize(
    ("target", "signal_name"),
    [("end", "SIGSEGV"), ("end_in_thread", "SIGKILL"), ("batches", "SIGABRT")],
)
def test_supervisor_names_the_records_of_a_process_that_died(
    tmp_path, target, signal_name
):
    with new_broker(records=100, partitions=1) as broker:
        options = ("--processes", "2", "--concurrency", "1")
        target = f"app:{target}"
        with running(broker, tmp_path, target, *options, app=KILLERS) as command:
            crash = command.wait_until(lambda: crashes_of(command))[0]

    assert f"ended ({signal_name}) while handlers ran; starting it" in crash["event"]
    assert ("error", "billing") == (crash["level"], crash["group"])
    first = crash["records"].split(", ")[0]
    assert first.startswith("orders-0@")
    assert first.endswith("(delivery 1)")


def test_supervisor_names_the_records_of_a_process_that_it_kills(tmp_path):
    with new_broker(records=1) as broker:
        options = ("--processes", "2", "--grace", "0")
        with running(broker, tmp_path, "app:hang", *options, app=KILLERS) as command:
            command.wait_until(lambda: "first record received" in command.stderr)
            assert 1 == command.stop()
            (crash,) = crashes_of(command)

    assert "(exit code 1) while handlers ran; the command stops" in crash["event"]
    assert "@0 (delivery 1)" in crash["records"]
