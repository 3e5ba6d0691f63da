"""A record that ends its process, with default settings and two processes."""

import os

import pytest

from tests.cli.run.running import new_broker, running
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
    tmp_path,
):
    with new_broker(partitions=1) as broker:
        broker.create_topic("dead")
        broker.produce("orders", [b"x"] * 10)
        options = ("--processes", "2", "--dead-letter", "dead")
        with running(broker, tmp_path, "app:handle", *options, app=APP) as command:
            until_true(lambda: broker.records("dead"), 60.0)
            command.wait_until(
                lambda: broker.group("billing").partition("orders").start_offset == 10
            )
            assert 0 == command.stop()

        done = {offset for _, offset, _ in command.entries("end")}
        (letter,) = broker.records("dead")
        assert {0, 1, 2, 3, 4, 6, 7, 8, 9} == done
        assert b"5" == dict(letter.headers)["sharecons.origin.offset"]
