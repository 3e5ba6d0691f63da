"""`sharecons run` with several processes, on the embedded broker."""

import os
import signal
import time
from functools import partial

import pytest

from tests.cli.run.running import TIMEOUT, new_broker, running
from tests.scenarios.queue import Queue
from tests.waiting import until_true

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals"),
    pytest.mark.slow("starts processes"),
]


@pytest.fixture
def broker():
    with new_broker() as broker:
        yield broker


def members(command):
    """Return the member ids and process indexes that have been assigned partitions."""
    return {(e["process"], e["member"]) for e in command.events("assigned")}


def produce_until(condition, produce, **limits):
    """Produce batches of 20 records until a condition is true; return their number."""
    count = 0

    def is_true():
        nonlocal count
        if condition():
            return True
        produce([b"x"] * 20)
        count += 20
        return False

    until_true(is_true, **limits)
    return count


def pids(command, what="end"):
    return {entry[0] for entry in command.entries(what)}


def test_processes_are_members_that_share_the_work(broker, tmp_path):
    with running(broker, tmp_path, "app:handle", "--processes", "3") as command:
        command.wait_until(lambda: len(members(command)) == 3)
        count = produce_until(
            lambda: len(pids(command)) == 3, partial(broker.produce, "orders")
        )
        command.wait_for("end", count)
        code = command.stop()

        assert 0 == code
        assert [0, 1, 2] == sorted(process for process, _ in members(command))
        assert 3 == len({member for _, member in members(command)})
        assert 3 == len(command.events("worker ended"))


def test_killed_process_processes_records_again_within_4_seconds(any_kafka, tmp_path):
    queue = Queue(any_kafka.admin, partitions=4)
    names = {"topic": queue.topic, "group": queue.group}
    options = ("--processes", "4")
    with running(any_kafka, tmp_path, "app:handle", *options, **names) as command:
        command.wait_until(lambda: len(members(command)) == 4)
        # The pause leaves time for the processes: producing keeps a processor busy.
        produce_until(lambda: len(pids(command)) == 4, queue.produce, pause=0.1)
        before = pids(command)
        began = time.monotonic()
        os.kill(min(before), signal.SIGKILL)
        produce_until(lambda: pids(command) - before, queue.produce, pause=0.1)
        took = time.monotonic() - began

        assert took < 4.0
        # The same member is back: the group does not wait for a session to expire.
        assert 4 == len(members(command))
        assert 0 == command.stop()


def test_processes_stop_when_the_supervisor_is_killed(broker, tmp_path):
    with running(broker, tmp_path, "app:handle", "--processes", "2") as command:
        command.wait_until(lambda: len(members(command)) == 2)
        command.process.kill()
        command.process.wait()
        command.wait_until_ended(lambda: len(command.events("worker ended")) == 2)

        assert 2 == len(command.events("the supervisor has died"))


def test_second_signal_stops_all_processes_without_waiting_for_handlers(
    broker, tmp_path
):
    broker.produce("orders", [b"x"] * 100)
    options = ("--processes", "2", "--grace", "600")
    with running(broker, tmp_path, "app:hang_in_thread", *options) as command:
        command.wait_for("begin", 1)
        command.wait_until(lambda: len(members(command)) == 2)
        command.process.terminate()
        command.wait_until(lambda: len(command.events("worker stops")) > 1)
        began = time.monotonic()
        code = command.stop()

        assert 128 + signal.SIGTERM == code
        assert time.monotonic() - began < 5.0


def test_error_in_the_module_ends_all_processes(broker, tmp_path):
    options = ("--processes", "2")
    with running(broker, tmp_path, "app:nothing", *options) as command:
        assert 2 == command.process.wait(TIMEOUT)
        assert "app:nothing: module 'app'" in command.stderr


def test_worker_of_the_module_has_a_member_id_per_process(broker, tmp_path):
    options = ("--processes", "2", "--member-id", "pod-7")
    with running(broker, tmp_path, "app:make_worker", *options) as command:
        command.wait_until(lambda: len(members(command)) == 2)
        first = dict(members(command))
        assert 0 == command.stop()
    with running(broker, tmp_path, "app:make_worker", *options) as command:
        command.wait_until(lambda: len(members(command)) == 2)

        assert first == dict(members(command))


def test_each_process_has_a_health_port(broker, tmp_path):
    options = ("--processes", "2", "--health-port", "0")
    with running(broker, tmp_path, "app:handle", *options) as command:
        for index in range(2):
            command.wait_until(
                lambda i=index: (200, "ok\n") == command.get("/readyz", process=i)
            )
        assert 2 == len({e["url"] for e in command.events("health port")})


def test_changed_module_is_loaded_and_an_error_in_it_waits_for_a_fix(broker, tmp_path):
    first, broken, second = (
        app.format(word)
        for app, word in ((APP, "one"), ("syntax error", ""), (APP, "two"))
    )
    produce = partial(broker.produce, "orders")
    with running(broker, tmp_path, "app:handle", "--reload", app=first) as command:
        path = tmp_path / "app.py"
        produce_until(lambda: command.entries("one"), produce)
        path.write_text(broken)
        command.wait_until(lambda: "SyntaxError" in command.stderr)
        command.wait_until(lambda: "it starts again when a file" in command.stderr)
        path.write_text(second)
        produce_until(lambda: command.entries("two"), produce)

        assert 0 == command.stop()


APP = """
import os

async def handle(record):
    with open(os.environ["APP_LOG"], "a") as log:
        log.write(f"{} {{os.getpid()}}\\n")
"""
