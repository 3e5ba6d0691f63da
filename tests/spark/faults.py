"""A source whose processes die where a test wants them to.

It says so in the environment, which all processes of a program inherit:

SHARECONS_TEST_DIES     a point of `POINTS` and a number: the program is killed when it
                        comes there for the so-manieth time
SHARECONS_TEST_CHANCE   how likely a task's attempt fails, or kills its worker, at each
                        batch of rows; the third attempt is spared
"""

import os
import random
import signal
import time
from pathlib import Path

from sharecons.spark.acquirer import Acquirer
from sharecons.spark.source import ShareGroupDataSource, ShareGroupStreamReader
from sharecons.spark.store import Store
from sharecons.spark.stream import StreamQuery

__all__ = ["POINTS", "FaultySource", "meet"]

# Where a driver may die: whose method, and whether before it or after it.
POINTS = {
    "acquired": (Store, "append", "before"),
    "entered": (Store, "append", "after"),
    "accepted": (Acquirer, "on_ack_results", "before"),
    "offered": (StreamQuery, "latest_offset", "after"),
    "planned": (StreamQuery, "plan_tasks", "after"),
    "commits": (StreamQuery, "commit", "before"),
    "swept": (Store, "_remove_oldest", "before"),
    "committed": (StreamQuery, "commit", "after"),
}


class FaultySource(ShareGroupDataSource):
    def streamReader(self, schema):  # noqa: N802
        made = super().streamReader(schema)
        return FaultyReader(made._options, made._load_id)


class FaultyReader(ShareGroupStreamReader):
    def _get_query(self):
        if self._query is None and (said := os.environ.get("SHARECONS_TEST_DIES")):
            point, times = said.split(":")
            _arm(*POINTS[point], int(times))
        return super()._get_query()

    def read(self, partition):
        chance = float(os.environ.get("SHARECONS_TEST_CHANCE", "0"))
        for batch in super().read(partition):
            _perhaps_fail(chance)
            yield batch
        _perhaps_fail(chance)


def _arm(owner, name, when, times):
    """Have a program die at a call of this method."""
    method = getattr(owner, name)
    left = times

    def dying(self, *given, **named):
        nonlocal left
        left -= 1
        if not left and when == "before":
            _die()
        result = method(self, *given, **named)
        if name == "latest_offset" and result == given[0]:
            left += 1  # nothing was offered
        elif left <= 0:
            _die()
        return result

    setattr(owner, name, dying)
    if owner is Acquirer:
        # It is only told of what was applied if it wants to know.
        owner.has_ack_callback = property(lambda _: True)


def _die():
    # The program, its JVM and this process; Spark's daemon ends with the JVM.
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _perhaps_fail(chance):
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is not None and task.attemptNumber() < 2 and random.random() < chance:
        if random.random() < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("on purpose")


def meet(place, many):
    """Wait until so many tasks are at their reading, each in a process of its own."""
    (Path(place) / str(os.getpid())).touch()
    end = time.monotonic() + 60
    while len(os.listdir(place)) < many:
        if time.monotonic() > end:
            raise TimeoutError(f"{len(os.listdir(place))} tasks read at once")
        time.sleep(0.02)
