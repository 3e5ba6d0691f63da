"""Run a job of minutes for each record, although its lock lasts for 30 s.

    python examples/long_job.py --seconds 600

The worker renews the locks. A job is a process of its own, so it does not block the
event loop. If its lock is lost, the process is killed, and the job starts again.
"""

import argparse
import os
import sys
from functools import partial

import anyio

from sharecons import Record, ShareWorker


async def main(seconds: float) -> None:
    worker = ShareWorker(
        "videos",
        partial(convert, seconds),
        group_id="converters",
        bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
        concurrency=os.cpu_count() or 1,
        # A job that hangs is cancelled after twice its time, and tried again.
        timeout=2 * seconds,
        # Jobs that run when the worker stops are given the time to finish.
        shutdown_grace=seconds,
    )
    await worker.run()
    print("closed")


async def convert(seconds: float, record: Record) -> None:
    name = (record.value or b"").decode(errors="replace")
    print("started", name, "delivery", record.delivery_count, flush=True)
    try:
        # In place of ffmpeg, for example.
        wait = f"import time; time.sleep({seconds})"
        await anyio.run_process([sys.executable, "-c", wait])
    except anyio.get_cancelled_exc_class():
        # It takes too long, its lock is lost, or the worker stops. anyio has killed the
        # process.
        print("stopped", name, flush=True)
        raise
    print("finished", name, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run a long job for each record.")
    parser.add_argument("--seconds", type=float, default=600.0)
    anyio.run(main, parser.parse_args().seconds)
