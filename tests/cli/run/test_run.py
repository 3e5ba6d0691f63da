"""`sharecons run` as a process, on the embedded broker: one process."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.processes import read_until
from tests.cli.run.running import TIMEOUT, new_broker, running

pytestmark = pytest.mark.slow("starts a process")


@pytest.fixture
def broker():
    with new_broker(records=40) as broker:
        yield broker


@pytest.mark.parametrize(
    "target",
    ["app:handle", "app:handle_in_thread", "app:handlers.handle", "app:batches"],
)
def test_each_record_is_handled_once(broker, tmp_path, target):
    with running(broker, tmp_path, target) as command:
        command.wait_for("end", 40)
        code = command.stop()

        assert 0 == code
        assert 40 == len(command.entries("end"))
        (ended,) = command.events("worker ended")
        assert (40, 0) == (ended["accepted"], ended["released"])


def test_function_that_makes_a_worker_is_called(broker, tmp_path):
    with running(broker, tmp_path, "app:make_worker") as command:
        command.wait_for("end", 40)

        assert 0 == command.stop()


def test_lines_below_the_log_level_are_not_written(broker, tmp_path):
    options = ("--log-level", "warning")
    with running(broker, tmp_path, "app:handle", *options) as command:
        command.wait_for("end", 40)
        code = command.stop()

        assert (0, "") == (code, command.stderr)


def test_grace_below_the_shutdown_grace_of_a_worker_is_a_warning(broker, tmp_path):
    options = ("--grace", "10")
    with running(broker, tmp_path, "app:make_worker", *options) as command:
        command.wait_for("end", 40)
        assert 0 == command.stop()

        (event,) = command.events(
            "handlers have less time to finish than the worker's shutdown_grace; "
            "raise --grace"
        )
        assert (10, 30) == (event["grace"], event["shutdown_grace"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_after_handlers_finish(broker, tmp_path, number):
    options = ("--concurrency", "5")
    with running(broker, tmp_path, "app:handle_slowly", *options) as command:
        command.wait_for("begin", 5)
        command.process.send_signal(number)
        code = command.process.wait(TIMEOUT)

        assert 0 == code
        ended = command.entries("end")
        assert sorted(command.entries("begin")) == sorted(ended)
        (event,) = command.events("worker ended")
        assert len(ended) == event["accepted"]


def test_handlers_are_cancelled_after_the_grace_period(broker, tmp_path):
    options = ("--concurrency", "5", "--grace", "0.5")
    with running(broker, tmp_path, "app:hang", *options) as command:
        command.wait_for("begin", 5)
        began = time.monotonic()
        code = command.stop()

        assert 0 == code
        assert 0.4 < time.monotonic() - began < 6.0
        assert 0 == command.events("worker ended")[0]["accepted"]


@pytest.mark.parametrize("handler", ["hang", "hang_in_thread"])
def test_second_signal_stops_without_waiting_for_handlers(broker, tmp_path, handler):
    with running(broker, tmp_path, f"app:{handler}", "--grace", "600") as command:
        command.wait_for("begin", 1)
        command.process.terminate()
        command.wait_until(lambda: command.events("worker stops"))
        began = time.monotonic()
        code = command.stop()

        assert 128 + signal.SIGTERM == code
        assert time.monotonic() - began < 4.0


@pytest.mark.parametrize(
    "target",
    [("app:hang_in_thread", "--grace", "0"), ("app:make_worker_without_grace",)],
)
def test_handler_in_thread_does_not_outlive_the_grace_period(broker, tmp_path, target):
    with running(broker, tmp_path, *target) as command:
        command.wait_for("begin", 1)
        began = time.monotonic()

        assert 1 == command.stop()
        assert time.monotonic() - began < 8.0
        assert "handlers did not end in 4 s" in command.stderr


def test_failed_records_are_retried_and_dead_lettered(broker, tmp_path):
    broker.create_topic("orders.dead")
    options = (
        *("--max-attempts", "2", "--retry-initial", "0.01", "--retry-maximum", "0.02"),
        *("--dead-letter", "orders.dead", "--concurrency", "40"),
    )
    with running(broker, tmp_path, "app:fail", *options) as command:
        command.wait_for("begin", 80)
        command.wait_until(lambda: len(broker.records("orders.dead")) == 40)
        code = command.stop()

        assert 0 == code
        (ended,) = command.events("worker ended")
        assert (40, 40) == (ended["retried"], ended["dead_lettered"])


def test_group_without_a_value_is_set_to_earliest(broker, tmp_path):
    with running(broker, tmp_path, "app:handle") as command:
        command.wait_for("end", 40)
        assert 0 == command.stop()

    config = broker.cluster.configs.group_config("billing")
    assert "earliest" == config["share.auto.offset.reset"]


def test_offset_reset_none_leaves_the_group_unchanged(broker, tmp_path):
    options = ("--auto-offset-reset", "none")
    with running(broker, tmp_path, "app:handle", *options) as command:
        command.wait_until(lambda: _handles_a_new_record(broker, command))
        assert 0 == command.stop()

    assert "share.auto.offset.reset" not in broker.cluster.configs.group_config(
        "billing"
    )


def _handles_a_new_record(broker, command):
    broker.produce("orders", [b"late"])
    return command.entries("end")


def test_missing_dead_letter_topic_ends_the_command(broker, tmp_path):
    options = ("--dead-letter", "orders.lost")
    with running(broker, tmp_path, "app:handle", *options) as command:
        assert 1 == command.process.wait(30)

        assert "the dead-letter topic 'orders.lost' does not exist" in command.stderr
        assert "Traceback" not in command.stderr


def test_missing_dead_letter_topic_is_created_with_create_topics(broker, tmp_path):
    options = ("--dead-letter", "orders.lost", "--create-topics")
    with running(broker, tmp_path, "app:handle", *options) as command:
        command.wait_for("end", 40)
        assert 0 == command.stop()

    assert () == broker.records("orders.lost")


def test_logs_have_one_json_object_per_line(broker, tmp_path):
    with running(broker, tmp_path, "app:handle") as command:
        command.wait_for("end", 40)
        command.stop()
        (received,) = command.events("signal received")
        (event,) = command.events("worker stops")

        assert "SIGTERM" == received["signal"]
        assert {"level", "timestamp", "logger", "grace"} <= event.keys()
        assert all(line.startswith("{") for line in command.stderr.splitlines())


def test_terminal_shows_progress(broker, tmp_path):
    (tmp_path / "app.py").write_text(QUICK)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "sharecons", "run", "app:handle"),
            *("--topic", "orders", "--group", "billing"),
            *("--bootstrap-server", broker.bootstrap_servers),
            *("--auto-offset-reset", "earliest"),
        ],
        cwd=tmp_path,
        stderr=slave,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(slave)
    try:
        shown = read_until(master, b"40 done")
        process.terminate()
        assert 0 == process.wait(TIMEOUT)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert b" records/s  " in shown
    assert b"0 running  0 waiting  0 retried  0 dead-lettered" in shown


QUICK = "async def handle(record):\n    pass\n"


def test_health_pages_follow_the_worker(broker, tmp_path):
    with running(broker, tmp_path, "app:handle", "--health-port", "0") as command:
        command.wait_for("end", 40)
        command.wait_until(lambda: (200, "ok\n") == command.get("/readyz"))
        assert (200, "ok\n") == command.get("/livez")
        (port,) = command.events("health port")
        assert port["url"].startswith("http://127.0.0.1:"), "no other host reaches it"
        _, metrics = command.get("/metrics")
        labels = 'group="billing",outcome="accepted",topic="orders"'
        for line in (
            f"sharecons_worker_outcomes_total{{{labels}}} 40.0",
            f"sharecons_worker_handler_duration_seconds_count{{{labels}}} 40.0",
            'sharecons_worker_records_running{group="billing"} 0.0',
            'sharecons_worker_live{group="billing"} 1.0',
            'sharecons_worker_ready{group="billing"} 1.0',
            'sharecons_consumer_records_fetched_total{group="billing"} 40.0',
        ):
            assert line in metrics.splitlines()
        broker.stop_broker(1)
        command.wait_until(lambda: 503 == command.get("/readyz")[0])

        assert "not consuming in group 'billing'" in command.get("/readyz")[1]
        assert 200 == command.get("/livez")[0]


def test_worker_whose_fetches_are_rejected_is_not_ready(broker, tmp_path):
    with running(broker, tmp_path, "app:handle", "--health-port", "0") as command:
        command.wait_for("end", 40)
        fault = broker.faults.on("ShareFetch", times=None)
        with fault.refuse("SHARE_SESSION_LIMIT_REACHED"):
            command.wait_until(lambda: 503 == command.get("/readyz")[0])
            problem = command.get("/readyz")[1]
        command.wait_until(lambda: 200 == command.get("/readyz")[0])

    assert problem.startswith(
        "disconnected: not consuming in group 'billing': fetches rejected"
    )
    assert "raise its group.share.max.share.sessions" in problem


def test_worker_whose_threads_all_hang_is_not_ready(broker, tmp_path):
    options = ("--handler-timeout", "0.1", "--concurrency", "2", "--health-port", "0")
    with running(broker, tmp_path, "app:hang_in_thread", *options) as command:
        command.wait_for("begin", 2)
        command.wait_until(lambda: 503 == command.get("/readyz")[0])

        text = (
            "no-threads: 2 cancelled handlers have not ended, and take all threads; "
            "give what blocks in them a timeout: the log has the lines where they "
            "hang\n"
        )
        assert (503, text) == command.get("/readyz")
        _, metrics = command.get("/metrics")
        gauge = 'sharecons_worker_abandoned_threads{group="billing"} 2.0'
        assert gauge in metrics
        assert "in hang_in_thread" in command.stderr


def test_blocked_event_loop_is_not_live(broker, tmp_path):
    with running(broker, tmp_path, "app:block", "--health-port", "0") as command:
        command.wait_for("begin", 1)
        command.wait_until(lambda: 503 == command.get("/livez")[0])

        _, text = command.get("/livez")
        assert text.startswith("blocked-loop: the event loop has been blocked for ")
        assert "app.py:" in text
        assert " in block; no heartbeats" in text
        (line,) = command.events("not live")
        assert " in block; no heartbeats" in line["reason"]


def test_stuck_handler_is_not_live_if_it_is_to_be(broker, tmp_path):
    options = ("--stuck-after", "0.2", "--health-port", "0")
    with running(broker, tmp_path, "app:hang", *options) as command:
        command.wait_for("begin", 1)
        command.wait_until(lambda: 503 == command.get("/livez")[0])

        _, text = command.get("/livez")
        assert text.startswith("stuck-handler: handler hang has run for ")
        assert ", more than stuck_after=0.2, with orders-0@" in text
        code, text = command.get("/readyz")
        assert (503, "stuck-handler") == (code, text.partition(":")[0])


@pytest.mark.parametrize("option", ["--liveness", "--ignore-condition"])
def test_condition_that_does_not_exist_is_a_usage_error(broker, tmp_path, option):
    options = (option, "stuck", "--health-port", "0")
    with running(broker, tmp_path, "app:handle", *options) as command:
        assert 2 == command.process.wait(TIMEOUT)
        assert "'stuck', which is no condition; the conditions are " in command.stderr


def test_unreachable_broker_is_an_exit_code(broker, tmp_path):
    options = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "1s")
    with running(broker, tmp_path, "app:handle", *options) as command:
        assert 3 == command.process.wait(TIMEOUT)
        assert "127.0.0.1:1" in command.stderr
