"""The supervisor: restarts, signals, and the end of its processes with its own."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from sharecons.cli.run.supervisor import ProcessStartError, Supervisor
from tests.cli.run.running import is_alive
from tests.complete_lines import complete_lines
from tests.waiting import until_true

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals"),
    pytest.mark.slow("starts processes"),
]

TIMEOUT = 20.0


class Supervised:
    """A supervisor that runs, and the lines of its processes."""

    def __init__(self, process, directory):
        self.process = process
        self.directory = directory

    def lines(self, index=0):
        return complete_lines(self.directory / str(index))

    def pids(self, index=0):
        return [
            int(line.split()[1]) for line in self.lines(index) if line[:6] == "start "
        ]

    def wait_until(self, condition, timeout=TIMEOUT):
        try:
            until_true(condition, timeout)
        except AssertionError as error:
            error.add_note(str([self.lines(i) for i in range(4)]))
            raise

    def wait_for_starts(self, count, *indexes):
        for index in indexes or (0,):
            self.wait_until(lambda i=index: len(self.pids(i)) >= count)

    def change_until_started_again(self, path, *indexes):
        """Write a file now and then: watchfiles does not report that it watches."""
        deadline = time.monotonic() + TIMEOUT
        while not all(len(self.pids(index)) > 1 for index in indexes):
            assert time.monotonic() < deadline, [self.lines(i) for i in indexes]
            path.write_text(f"x = {time.monotonic()}")
            with suppress(AssertionError):
                self.wait_until(
                    lambda: all(len(self.pids(i)) > 1 for i in indexes), timeout=1.0
                )

    def end(self):
        """Return exit code and output of the supervisor."""
        out, _ = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, out


@contextmanager
def supervise(directory, count=1, mode="work", grace=5.0, watched=""):
    state = directory / "state"
    state.mkdir()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.cli.run.supervise", str(state)),
            *(str(count), mode, str(grace), str(watched)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    supervised = Supervised(process, state)
    try:
        yield supervised
    finally:
        process.kill()
        process.communicate()
        pids = [pid for i in range(count) for pid in supervised.pids(i)]
        supervised.wait_until(lambda: not any(is_alive(pid) for pid in pids))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_each_process_and_the_supervisor(tmp_path, number):
    with supervise(tmp_path, count=3) as supervised:
        supervised.wait_for_starts(1, 0, 1, 2)
        supervised.process.send_signal(number)
        code, out = supervised.end()

        assert 0 == code
        assert [["signal SIGTERM"]] * 3 == [supervised.lines(i)[1:] for i in range(3)]
        assert f"{number.name}: the processes finish their handlers" in out


def test_killed_process_is_started_again_without_delay(tmp_path):
    with supervise(tmp_path, count=2) as supervised:
        supervised.wait_for_starts(1, 0, 1)
        began = time.monotonic()
        os.kill(supervised.pids(1)[0], signal.SIGKILL)
        supervised.wait_for_starts(2, 1)

        assert time.monotonic() - began < 4.0
        assert 1 == len(supervised.pids(0))
        supervised.process.terminate()
        code, out = supervised.end()
        assert 0 == code
        assert "process 1 ended (SIGKILL); starting it again" in out


def test_crash_loop_is_slowed_down_and_can_be_stopped(tmp_path):
    with supervise(tmp_path, mode="exit1") as supervised:
        supervised.wait_for_starts(4)
        supervised.process.terminate()
        _, out = supervised.end()

        assert re.findall(r"exit code 1\); (.*)", out)[:3] == [
            "starting it again",
            "it starts again in 0.5 s",
            "it starts again in 1 s",
        ]


def test_usage_error_of_one_process_stops_all(tmp_path):
    with supervise(tmp_path, count=3, mode="exit2") as supervised:
        code, _ = supervised.end()

        assert 2 == code
        assert all(len(supervised.pids(i)) <= 1 for i in range(3))


def test_supervisor_ends_when_all_processes_have_finished(tmp_path):
    with supervise(tmp_path, count=2, mode="exit0") as supervised:
        code, out = supervised.end()

        assert 0 == code
        assert 2 == out.count("it has finished")


def test_process_is_killed_after_the_grace_period(tmp_path):
    with supervise(tmp_path, mode="stubborn", grace=0.5) as supervised:
        supervised.wait_for_starts(1)
        supervised.process.terminate()
        code, out = supervised.end()

        assert 1 == code
        assert "process 0 did not stop in 0.5 s; it is killed" in out


def test_second_signal_kills_after_two_seconds(tmp_path):
    with supervise(tmp_path, mode="stubborn", grace=3600.0) as supervised:
        supervised.wait_for_starts(1)
        supervised.process.terminate()
        supervised.wait_until(lambda: len(supervised.lines()) == 2)
        began = time.monotonic()
        supervised.process.terminate()
        code, _ = supervised.end()

        assert 1 == code
        assert ["signal SIGTERM"] * 2 == supervised.lines()[1:]
        assert 1.5 < time.monotonic() - began < 6.0


def test_processes_stop_when_the_supervisor_is_killed(tmp_path):
    with supervise(tmp_path, count=2) as supervised:
        supervised.wait_for_starts(1, 0, 1)
        supervised.process.kill()
        for index in range(2):
            supervised.wait_until(lambda i=index: len(supervised.lines(i)) == 3)
            assert ["lost", "signal SIGTERM"] == supervised.lines(index)[1:]


def test_processes_restart_when_a_file_changes(tmp_path):
    watched = tmp_path / "source"
    watched.mkdir()
    with supervise(tmp_path, count=2, watched=watched) as supervised:
        supervised.wait_for_starts(1, 0, 1)
        supervised.change_until_started_again(watched / "app.py", 0, 1)
        supervised.process.terminate()
        code, out = supervised.end()

        assert 0 == code
        assert "changed: app.py; restarting" in out


def test_failed_process_waits_for_a_change(tmp_path):
    watched = tmp_path / "source"
    watched.mkdir()
    with supervise(tmp_path, mode="exit2", watched=watched) as supervised:
        supervised.wait_for_starts(1)
        supervised.wait_until(lambda: not is_alive(supervised.pids()[0]))
        supervised.change_until_started_again(watched / "app.py", 0)
        supervised.process.terminate()
        _, out = supervised.end()

        assert "it starts again when a file has changed" in out


@pytest.mark.anyio
async def test_program_that_does_not_exist_is_an_error():
    supervisor = Supervisor(
        lambda _: ["/nonexistent/program"],
        2,
        grace=1.0,
        report=print,
        warn=print,
        fail=print,
    )
    with pytest.raises(ProcessStartError, match="process . cannot be started: "):
        await supervisor.run()


@pytest.mark.anyio
async def test_error_while_watching_is_not_an_error_of_a_process(tmp_path):
    async def changes():
        raise OSError(28, "too many watches")
        yield

    supervisor = Supervisor(
        lambda _: [sys.executable, "-c", "import time; time.sleep(60)"],
        1,
        grace=1.0,
        report=print,
        warn=print,
        fail=print,
        changes=changes,
    )
    with pytest.raises(ExceptionGroup) as caught:
        await supervisor.run()

    assert caught.group_contains(OSError, match="too many watches")
