"""Run `sharecons run` as a process, with a handler of `app`."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from sharecons.testing import EmbeddedBroker
from tests.complete_lines import complete_lines
from tests.waiting import until_true

__all__ = ["TIMEOUT", "Command", "is_alive", "new_broker", "running"]

TIMEOUT = 30.0
APP = Path(__file__).with_name("app.py")
SOON = {
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "100",
}


@contextmanager
def new_broker(records=0, partitions=4):
    with EmbeddedBroker(topics={"orders": partitions}, settings=SOON) as broker:
        if records:
            broker.produce("orders", [b"x"] * records)
        yield broker


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Command:
    """A command that runs, and writes its log to stderr."""

    def __init__(self, process, directory):
        self.process = process
        self.directory = directory

    def entries(self, what):
        """Return process id, offset and delivery count of each handler's note."""
        words = (line.split() for line in complete_lines(self.directory / "log"))
        return [tuple(map(int, numbers)) for first, *numbers in words if first == what]

    @property
    def stderr(self):
        return (self.directory / "stderr").read_text()

    def events(self, name):
        """Return the log events of this name."""
        lines = self.stderr.splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in events if event["event"] == name]

    def wait_until(self, condition):
        """Wait until a condition is true; fail if the command ends before."""

        def is_true():
            result = condition()
            assert result or self.process.poll() is None, "the command has ended"
            return result

        return self._until_true(is_true)

    def wait_until_ended(self, condition):
        """Wait until a condition is true, even after the command has ended."""
        return self._until_true(condition)

    def _until_true(self, condition):
        try:
            return until_true(condition, TIMEOUT)
        except AssertionError as error:
            error.add_note(self.stderr[-3000:])
            raise

    def wait_for(self, what, count):
        """Wait until handlers have noted this `count` times."""
        return self.wait_until(lambda: len(self.entries(what)) >= count)

    def stop(self):
        """Send SIGTERM; return the exit code."""
        self.process.terminate()
        return self.process.wait(TIMEOUT)

    def health_url(self, process=None):
        """Return the address of the health port; None if there is none yet."""
        ports = [e for e in self.events("health port") if e.get("process") == process]
        return ports[-1]["url"] if ports else None

    def get(self, path, process=None, url=None):
        """Return status and text of a page; None if there is no health port yet."""
        url = url or self.health_url(process)
        if url is None:
            return None
        try:
            with urlopen(f"{url}{path}", timeout=10) as response:
                return response.status, response.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except URLError:
            return None


@contextmanager
def running(
    broker,
    directory,
    target,
    *options,
    app=None,
    topic="orders",
    group="billing",
    prefix=(),
):
    """Run `sharecons run TARGET` in a directory with `app.py`.

    `prefix` is a command that runs the command.
    """
    directory.mkdir(exist_ok=True)
    (directory / "log").touch()
    if not (directory / "app.py").exists():
        (directory / "app.py").write_text(app or APP.read_text())
    worker = ("--topic", topic, "--group", group)
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    if "make_worker" in target:
        worker = servers = ()
    with (directory / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            [
                *(*prefix, sys.executable, "-m", "sharecons", "run", target),
                *(*worker, *servers, *options),
            ],
            cwd=directory,
            stderr=stderr,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "APP_LOG": str(directory / "log"),
                "APP_SERVERS": broker.bootstrap_servers,
            },
        )
        try:
            yield Command(process, directory)
        finally:
            process.kill()
            process.wait()
