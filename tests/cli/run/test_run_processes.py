"""`sharecons run` with several processes, on the embedded broker."""

import os
import signal
import socket
import time
from collections import Counter
from functools import partial

import pytest

from tests.cli.run.running import TIMEOUT, is_alive, new_broker, running
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


def has_others(command, before):
    return pids(command) - before


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
        attempts, killed = [], set()
        # A busy machine can start one process slowly, not three.
        while not attempts or (min(attempts) >= 4.0 and len(attempts) < 3):
            before = pids(command)
            began = time.monotonic()
            killed.add(victim := min(before - killed))
            os.kill(victim, signal.SIGKILL)
            is_back = partial(has_others, command, before)
            produce_until(is_back, queue.produce, pause=0.1)
            attempts.append(time.monotonic() - began)

        assert min(attempts) < 4.0, attempts
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


def test_blocked_process_ends_after_its_supervisor_was_killed(broker, tmp_path):
    options = ("--processes", "2", "--grace", "0")
    with running(broker, tmp_path, "app:block", *options) as command:
        broker.produce("orders", [b"x"])
        command.wait_for("begin", 1)
        (pid,) = pids(command, "begin")
        command.process.kill()
        command.process.wait()
        command.wait_until_ended(lambda: not is_alive(pid))

        (event,) = command.events("handlers did not end in 4 s; the process exits")
        assert ("error", "billing") == (event["level"], event["group"])


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

        received = command.events("signal received")
        assert {("billing", 0), ("billing", 1)} == {
            (event["group"], event["process"]) for event in received
        }
        (first,) = command.events("SIGTERM: the processes finish their handlers")
        assert "billing" == first["group"]
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


ACCEPTED = 'outcomes_total{group="billing",outcome="accepted",topic="orders"}'
DURATIONS = (
    'handler_duration_seconds_count{group="billing",outcome="accepted",topic="orders"}'
)


def scrape(command):
    """Return the worker's values of a scrape, by name and labels."""
    code, text = command.get("/metrics")
    assert 200 == code
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#"]
    return {name.removeprefix("sharecons_worker_"): float(v) for name, v in lines}


def test_one_scrape_has_the_sum_of_four_processes(broker, tmp_path):
    options = ("--processes", "4", "--health-port", "0")
    with running(broker, tmp_path, "app:handle", *options) as command:
        command.wait_until(lambda: (200, "ok\n") == command.get("/readyz"))
        assert (200, "ok\n") == command.get("/livez")
        assert 1 == len(command.events("health port"))
        produce = partial(broker.produce, "orders")
        command.wait_until(lambda: len(members(command)) == 4)
        count = produce_until(lambda: len(pids(command)) == 4, produce)
        command.wait_for("end", count)
        command.wait_until(lambda: scrape(command)[ACCEPTED] == count)

        by_process = Counter(entry[0] for entry in command.entries("end"))
        assert 4 == len(by_process)
        # A process that gets no CPU for a second has an older report in a scrape, and
        # its event loop counts as blocked.
        gauges = ('live{group="billing"}', 'ready{group="billing"}')
        command.wait_until(lambda: {4} == {scrape(command)[name] for name in gauges})
        found = scrape(command)
        assert sum(by_process.values()) == count == found[DURATIONS]
        assert 4 == found["sharecons_run_processes"]
        assert 0 == found["sharecons_run_restarts_total"]

        # The counts of a process that has ended stay; its gauges do not.
        os.kill(min(by_process), signal.SIGKILL)
        command.wait_until(lambda: scrape(command)["sharecons_run_restarts_total"] == 1)
        assert count <= scrape(command)[ACCEPTED]
        (ended,) = [
            event
            for index in range(4)
            for event in command.events(
                f"process {index} ended (SIGKILL); starting it again"
            )
        ]
        assert ended["event"].startswith(f"process {ended['process']} ")
        command.wait_until(lambda: scrape(command)['ready{group="billing"}'] == 4)
        produce_until(lambda: len(pids(command)) == 5, produce)
        command.wait_until(
            lambda: scrape(command)[ACCEPTED] == len(command.entries("end"))
        )
        assert 0 == command.stop()


def test_process_that_blocks_its_event_loop_is_named(broker, tmp_path):
    options = ("--processes", "2", "--health-port", "0", "--grace", "0")
    with running(broker, tmp_path, "app:block", *options) as command:
        command.wait_until(lambda: (200, "ok\n") == command.get("/readyz"))
        broker.produce("orders", [b"x"])
        command.wait_for("begin", 1)
        command.wait_until(lambda: 503 == command.get("/livez")[0])

        assert "the event loop has been blocked for" in command.get("/livez")[1]
        assert command.get("/livez")[1].startswith("process ")
        assert 1 == scrape(command)['live{group="billing"}']
        (pid,) = pids(command, "begin")
        os.kill(pid, signal.SIGKILL)
        command.stop()


def test_used_health_port_of_several_processes_is_a_usage_error(broker, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ("--processes", "2", "--health-port", port)
        with running(broker, tmp_path, "app:handle", *options) as command:
            assert 2 == command.process.wait(TIMEOUT)
            text = f"sharecons run: --health-port: cannot listen on 127.0.0.1:{port}: "
            assert text in command.stderr


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
