"""Handlers for the tests of `sharecons run`. They write a line for each record."""

import os
import threading
from pathlib import Path

import anyio

from sharecons import BatchHandler, Handler, ShareWorker

LOG = Path(os.environ.get("APP_LOG", os.devnull))
NEVER = threading.Event()


def note(what, record=None):
    """Append a line: event, process id, offset, delivery count."""
    numbers = () if record is None else (record.offset, record.delivery_count)
    line = " ".join(map(str, (what, os.getpid(), *numbers)))
    with LOG.open("a") as file:
        file.write(f"{line}\n")


async def handle(record):
    note("begin", record)
    await anyio.lowlevel.checkpoint()
    note("end", record)


def handle_in_thread(record):
    assert threading.current_thread() is not threading.main_thread()
    note("end", record)


async def handle_slowly(record):
    note("begin", record)
    await anyio.sleep(1.0)  # real time: a signal arrives meanwhile
    note("end", record)


async def hang(record):
    note("begin", record)
    await anyio.sleep_forever()


def hang_in_thread(record):
    note("begin", record)
    NEVER.wait()


async def block(record):
    """Block the event loop, which a handler must not do."""
    note("begin", record)
    NEVER.wait()


async def fail(record):
    note("begin", record)
    raise ValueError("no such order")


def handle_many(records):
    for record in records:
        note("end", record)


def make_worker():
    worker = ShareWorker(
        group_id="billing",
        bootstrap_servers=os.environ["APP_SERVERS"],
        auto_offset_reset="earliest",
    )
    worker.handler("orders")(handle)
    return worker


def make_worker_without_grace():
    worker = ShareWorker(
        group_id="billing",
        bootstrap_servers=os.environ["APP_SERVERS"],
        auto_offset_reset="earliest",
        shutdown_grace=0.0,
    )
    worker.handler("orders")(hang_in_thread)
    return worker


def generate(record):
    yield record


def without_arguments():
    return None


async def async_without_arguments():
    return None


def two_arguments(record, other):
    return None


class Handlers:
    async def handle(self, record):
        note("end", record)


handlers = Handlers()
batches = BatchHandler(handle_many)
with_settings = Handler(handle, concurrency=2)
NUMBER = 5
