"""A consumer in its own process that logs records and acknowledgement results.

    python -m tests.scenarios.worker BOOTSTRAP TOPIC GROUP MODE LOG [MEMBER_ID]

Each line of the log: kind, monotonic nanoseconds, partition, first offset, last offset,
delivery count. The kind `S` is the start, after the imports; `P` is a processed record
(before its acknowledgement); `1`, `2` and `3` are confirmed accepts, releases and
rejects. Lines are written immediately, so that a killed process loses none.
"""

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Sequence

import anyio

from sharecons import AcknowledgeResult, Record, ShareConsumer

PAUSE_AFTER = 500
"""Records between two pauses, so that the process runs long enough to be killed."""


class WorkerLog:
    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def log_start(self) -> None:
        os.write(self._file, f"S {time.monotonic_ns()} 0 0 -1 0\n".encode())

    def log_processed(self, record: Record) -> None:
        where = f"{record.partition} {record.offset} {record.offset}"
        line = f"P {time.monotonic_ns()} {where} {record.delivery_count}\n"
        os.write(self._file, line.encode())

    def log_confirmed(self, results: Sequence[AcknowledgeResult]) -> None:
        now = time.monotonic_ns()
        good = [result for result in results if result.error is None]
        lines = [
            f"{r.type.value} {now} {r.partition} {r.first_offset} {r.last_offset} 0\n"
            for r in good
        ]
        os.write(self._file, "".join(lines).encode())


def acknowledge(record: Record) -> None:
    """Release a third of the records once, reject a tenth, accept the rest."""
    number = int(record.value or b"0")
    if number % 3 == 0 and record.delivery_count == 1:
        record.release()
    elif number % 10 == 0:
        record.reject()
    else:
        record.accept()


async def main(
    bootstrap: str, topic: str, group: str, mode: str, path: str, member: str = ""
) -> None:
    log = WorkerLog(path)
    log.log_start()
    consumer = ShareConsumer(
        topic,
        group_id=group,
        bootstrap_servers=bootstrap,
        acknowledgement="explicit" if mode == "explicit" else "implicit",
        member_id=member or None,
        on_acknowledged=log.log_confirmed,
    )
    async with consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(close_on_sigterm, consumer)
        seen = 0
        async for record in consumer:
            log.log_processed(record)
            if mode == "explicit":
                acknowledge(record)
            seen += 1
            if seen % PAUSE_AFTER == 0 or mode == "single":
                await anyio.sleep(0.005)  # real time: the process runs long enough


async def close_on_sigterm(consumer: ShareConsumer) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            await consumer.aclose()
            return


if __name__ == "__main__":
    faulthandler.enable()  # SIGABRT prints the stacks of a hanging process
    anyio.run(main, *sys.argv[1:])
