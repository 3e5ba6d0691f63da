"""A group of up to 1,000 members, all but one of which only send heartbeats."""

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.limits.broker import Broker, running_broker
from tests.limits.figures import Figure
from tests.limits.load import Load
from tests.limits.members import running_members, usage_of
from tests.limits.run import WARM_UP, warm_up
from tests.limits.scenes import SPREAD, Seat

__all__ = ["run_large_group"]

GROUP: Final = "crowded"
TOPIC: Final = "topic-0"
RATE: Final = 500.0
WINDOW: Final = 10.0
REST: Final = 5.0

log = logging.getLogger(__name__)


def run_large_group(size: int, cleanup: CleanupProcess) -> list[Figure]:
    """Measure a member of a group of this size; return the figures."""
    with running_broker() as broker:
        broker.create_topics({TOPIC: SPREAD, WARM_UP: 1})
        warm_up(broker, cleanup)
        return list(_figures(size, broker, cleanup))


def _figures(size: int, broker: Broker, cleanup: CleanupProcess) -> Iterator[Figure]:
    rest = broker.cpu_at_rest(REST)
    with _crowd(size - 1, broker, cleanup) as process:
        assert process.stdout is not None
        for name, what in (("admitted", "admitted"), ("assigned", "with partitions")):
            event = _event(process.stdout.readline(), name)
            text = f"all simulated members are {what}"
            yield Figure(text, "s", event["seconds"], is_broker=True)
        log.info("  %d members have partitions", size - 1)
        time.sleep(REST)
        before = broker.usage()[0]
        time.sleep(WINDOW)
        used = (broker.usage()[0] - before) / WINDOW - rest
        yield Figure(
            "idle", "CPU ms/s", max(0.0, used) * 1000, is_broker=True, detail="broker"
        )
        yield from _member(broker, cleanup)
        if process.poll() is not None:
            raise RuntimeError("the simulated members have ended")


def _member(broker: Broker, cleanup: CleanupProcess) -> Iterator[Figure]:
    """Yield the figures of the member that is a real consumer."""
    places = [(TOPIC, number) for number in range(SPREAD)]
    address, traffic = broker.addresses["MEMBERS"], broker.traffic["MEMBERS"]
    with running_members(address, [Seat(GROUP, (TOPIC,))], 1, cleanup) as members:
        with Load(broker.direct, places, RATE):
            members.wait(lambda: bool(members.of("joined")), "first record")
        (joined,) = members.of("joined")
        yield Figure("join until the first record", "s", joined["seconds"])
        time.sleep(REST)
        earlier, cpu = traffic.copy(), usage_of(members.processes)[0]
        time.sleep(WINDOW)
        passed = traffic.since(earlier)
        yield Figure("idle", "requests/s", passed.total / WINDOW, detail="all")
        yield Figure("idle", "kB/s", passed.kilobytes / WINDOW)
        used = (usage_of(members.processes)[0] - cpu) / WINDOW
        yield Figure("idle", "CPU ms/s", used * 1000, detail="member")
        members.leave(0)
        members.wait(lambda: bool(members.of("left")), "leave")
        yield Figure("member leaves", "s", members.of("left")[0]["seconds"])


def _event(line: str, name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(line)
    assert event["event"] == name, event
    return event


@contextmanager
def _crowd(
    size: int, broker: Broker, cleanup: CleanupProcess
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [
            *[sys.executable, "-m", "tests.limits.crowd", "--bootstrap", broker.direct],
            *["--group", GROUP, "--topic", TOPIC, "--members", str(size)],
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    cleanup.kill(process.pid)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        cleanup.spare(process.pid)
