"""A source whose processes are killed at chosen points.

Environment variables, which all processes of a program inherit, configure it:

SHARECONS_TEST_KILL     a point of `POINTS` and a number n: the program is killed when
                        it reaches that point for the nth time
SHARECONS_TEST_CHANCE   the probability with which a task fails, or kills its worker, at
                        each batch of rows; the third attempt of a task does not fail
"""

import os
import random
import signal
from pathlib import Path

from sharecons.spark.acquirer import Acquirer
from sharecons.spark.local_storage import LocalStorage
from sharecons.spark.source import ShareGroupDataSource, ShareGroupStreamReader
from sharecons.spark.store import Store
from sharecons.spark.stream import StreamQuery
from tests.waiting import until_true

__all__ = ["POINTS", "FaultySource", "kill_at", "wait_for_tasks"]

# Where a driver is killed: before or after a call of a method.
POINTS = {
    "before write": (Store, "append", "before"),
    "after write": (Store, "append", "after"),
    "accepted": (Acquirer, "on_ack_results", "before"),
    "after latest offset": (StreamQuery, "latest_offset", "after"),
    "after planning": (StreamQuery, "plan_tasks", "after"),
    "before commit": (StreamQuery, "commit", "before"),
    "before removal": (LocalStorage, "remove", "before"),
    "after commit": (StreamQuery, "commit", "after"),
}


class FaultySource(ShareGroupDataSource):
    def create_stream_reader(self, options, load_id):
        return FaultyReader(options, load_id)


class FaultyReader(ShareGroupStreamReader):
    def open_query(self):
        if kill := os.environ.get("SHARECONS_TEST_KILL"):
            point, times = kill.split(":")
            kill_at(*POINTS[point], int(times))
        return super().open_query()

    def read(self, partition):
        chance = float(os.environ.get("SHARECONS_TEST_CHANCE", "0"))
        for batch in super().read(partition):
            _fail_with(chance)
            yield batch
        _fail_with(chance)


def kill_program():
    """Kill the program, its JVM and this process; Spark's daemon ends with the JVM."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def kill_at(owner, name, when, times, kill=kill_program):
    """Make the nth call of a method kill the program."""
    method = getattr(owner, name)
    left = times

    def killing(*args, **kwargs):
        nonlocal left
        left -= 1
        if not left and when == "before":
            kill()
        result = method(*args, **kwargs)
        if name == "latest_offset" and result == args[1]:
            left += 1  # there was no new offset
        elif left <= 0:
            kill()
        return result

    setattr(owner, name, killing)


def _fail_with(chance):
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is not None and task.attemptNumber() < 2 and random.random() < chance:
        if random.random() < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("on purpose")


def wait_for_tasks(directory, count):
    """Wait until `count` tasks are running, each in a process of its own."""
    (Path(directory) / str(os.getpid())).touch()
    until_true(lambda: len(os.listdir(directory)) >= count, 60, what="each task runs")
