"""sharecons' worker with a slow handler."""

import argparse
from typing import Any

import anyio
from anyio.abc import TaskGroup

from sharecons import ShareWorker
from tests.bench.clients.common import Meter, Tally, arguments, print_result


async def slow(options: argparse.Namespace) -> object:
    """Handle records one at a time, and sleep at each of them, or some."""
    meter, tally = Meter(), Tally(options.records)

    async def handle(record: Any) -> None:
        meter.on_first_record()
        tally.add(1, len(record.value))
        if tally.count % options.pause_every == 0:
            await anyio.sleep(options.pause)

    worker = ShareWorker(
        options.topic,
        handle,
        group_id=options.group,
        bootstrap_servers=options.bootstrap,
        concurrency=1,
        max_records=options.max_records,
    )
    tasks: TaskGroup
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await anyio.sleep(options.seconds)
        report = meter.report(tally)
        worker.stop_now()
    return report


def main() -> None:
    print_result(anyio.run(slow, arguments()))


if __name__ == "__main__":
    main()
