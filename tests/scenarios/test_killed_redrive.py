"""`sharecons dead-letters redrive`, killed and run again, on both brokers."""

import random
import re
import signal
import subprocess
import sys

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from tests.dead_letters.letters import marks_of, new_letter, write_letters
from tests.kafka_plugin import Admin
from tests.scenarios.repeating import repeat

pytestmark = pytest.mark.slow("starts processes")

KILLS = 2


async def log_end(client: ShareGroupAdmin, topic: str) -> int:
    """Return the number of records of a topic with two partitions."""
    keys = [TopicPartition(topic, number) for number in range(2)]
    ends = (await client.list_offsets(keys)).found
    return sum(each.offset or 0 for each in ends.values())


def count_records(admin: Admin, topic: str, *, at_least: int = 0) -> int:
    """Wait until a topic has `at_least` records; return their number."""

    async def count() -> int:
        async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
            return await repeat(
                lambda: log_end(client, topic), until=lambda found: found >= at_least
            )

    return anyio.run(count)


def start_redrive(admin: Admin, dead: str, *args: str) -> subprocess.Popen[str]:
    servers = ("--bootstrap-server", admin.bootstrap_servers)
    command = (sys.executable, "-m", "sharecons", "dead-letters", "redrive", dead)
    return subprocess.Popen(
        [*command, *servers, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def kill_when_written(
    process: subprocess.Popen[str], admin: Admin, topic: str, at_least: int
) -> bool:
    """Kill the process once a topic has `at_least` records.

    Return True if the process was still running.
    """
    async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
        await repeat(
            lambda: log_end(client, topic),
            until=lambda end: process.poll() is not None or end >= at_least,
            within=60,
            pause=0.001,
        )
    if process.poll() is None:
        # real time: a random point of the process's work
        await anyio.sleep(random.uniform(0, 0.005))
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def redrive_with_kills(
    admin: Admin, count: int, seed: int, *, filtered: bool = False
) -> int:
    """Redrive `count` dead letters; return how many of KILLS hit a running process.

    If it is filtered, a random half is redriven with kills, and then the rest.
    """
    random.seed(seed)
    target = admin.create_topic(partitions=2)
    dead = admin.create_topic(partitions=2)
    groups = [random.choice(["billing", "shipping"]) for _ in range(count)]
    letters = [
        new_letter(number, topic=target, group=group)
        for number, group in enumerate(groups)
    ]
    args = ("--filter", "group=billing") if filtered else ()
    selected = groups.count("billing") if filtered else count

    async def write() -> None:
        await write_letters(admin.bootstrap_servers, letters, topic=dead, partitions=2)

    anyio.run(write)
    killed = 0
    for number in range(KILLS):
        process = start_redrive(admin, dead, *args)
        part = random.randrange(1, selected * (number + 1) // (KILLS + 1))
        killed += anyio.run(kill_when_written, process, admin, target, part)
    for last_args in (args, ()):
        last = start_redrive(admin, dead, *last_args)
        out, err = last.communicate(timeout=100)
        assert (0, "") == (last.returncode, err), out

    async def marks() -> dict[tuple[int, int], int]:
        async with ShareGroupAdmin(bootstrap_servers=admin.bootstrap_servers) as client:
            found = await marks_of(client, target)
        return {(partition, offset): n for (_, partition, offset), n in found.items()}

    found = anyio.run(marks)
    assert {(n % 2, n // 2): 1 for n in range(count)} == found
    assert count == count_records(admin, target)
    return killed


def test_killed_filtered_redrive_leaves_the_rest_for_another_run(admin: Admin) -> None:
    assert redrive_with_kills(admin, 2_000, seed=4, filtered=True) > 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in (1, 2))]
)
def test_killed_redrive_of_10000_writes_each_once(admin: Admin, seed: int) -> None:
    assert redrive_with_kills(admin, 10_000, seed) > 0


def test_interrupted_redrive_exits_with_130_and_continues(admin: Admin) -> None:
    target = admin.create_topic(partitions=2)
    dead = admin.create_topic(partitions=1)
    letters = [new_letter(number, topic=target) for number in range(100)]

    async def write() -> None:
        await write_letters(admin.bootstrap_servers, letters, topic=dead)

    anyio.run(write)
    process = start_redrive(admin, dead, "--rate", "4")
    count_records(admin, target, at_least=1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert 130 == process.returncode
    assert re.fullmatch(
        r"sharecons dead-letters redrive: interrupted: \d+ redriven; \d+ offsets left; "
        r"run it again to continue\n",
        err,
    )
    last = start_redrive(admin, dead)
    out, err = last.communicate(timeout=60)

    assert (0, "") == (last.returncode, err), out
    assert 100 == count_records(admin, target)
