"""A consumer in a process of its own, that writes down what it does and hears.

    python -m tests.scenarios.worker BOOTSTRAP TOPIC GROUP MODE JOURNAL [MEMBER_ID]

Each line of the journal: what, monotonic nanoseconds, partition, first offset, last
offset, delivery count. `P` is a record processed (before it is acknowledged); `1`,
`2`, `3` are confirmed accepts, releases, rejects. Lines are written when they
happen, so that a kill loses none.
"""

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Sequence

import anyio

from sharecons import AcknowledgeResult, Record, ShareConsumer

PACE = 500
"""Records between two short pauses: the process must live long enough to be killed."""


class Journal:
    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def processed(self, record: Record) -> None:
        where = f"{record.partition} {record.offset} {record.offset}"
        line = f"P {time.monotonic_ns()} {where} {record.delivery_count}\n"
        os.write(self._file, line.encode())

    def confirmed(self, results: Sequence[AcknowledgeResult]) -> None:
        now = time.monotonic_ns()
        good = [result for result in results if result.error is None]
        lines = [
            f"{r.type.value} {now} {r.partition} {r.first_offset} {r.last_offset} 0\n"
            for r in good
        ]
        os.write(self._file, "".join(lines).encode())


def judge(record: Record) -> None:
    """A third is released once, a tenth is rejected, the rest is accepted."""
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
    journal = Journal(path)
    consumer = ShareConsumer(
        topic,
        group_id=group,
        bootstrap_servers=bootstrap,
        acknowledgement="explicit" if mode == "explicit" else "implicit",
        member_id=member or None,
        on_acknowledged=journal.confirmed,
    )
    async with consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(close_on_sigterm, consumer)
        seen = 0
        async for record in consumer:
            journal.processed(record)
            if mode == "explicit":
                judge(record)
            seen += 1
            if seen % PACE == 0 or mode == "single":
                await anyio.sleep(0.005)


async def close_on_sigterm(consumer: ShareConsumer) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            await consumer.aclose()
            return


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)  # where does it hang?
    anyio.run(main, *sys.argv[1:])
