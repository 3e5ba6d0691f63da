"""A worker or a consumer whose process stops itself when records arrive.

    python -m tests.scenarios.stopped_process_program BOOTSTRAP TOPIC GROUP COUNT [DEAD]

It receives COUNT records. Then it sends itself SIGSTOP each time that a broker has
returned records, before the client receives them. With DEAD, a dead-letter topic, it is
a worker. A line "received" is written for each record.
"""

import os
import signal
import sys
from typing import Any

import anyio

from sharecons import DeadLetterQueue, Record, ShareConsumer, ShareWorker
from tests.scenarios.interrupted_network import InterruptedNetwork


class Stopping:
    """The program."""

    def __init__(self, arguments: list[str]) -> None:
        bootstrap, self._topic, group, count, *self._dead = arguments
        self._left = int(count)
        self._network = InterruptedNetwork()
        self._options: dict[str, Any] = {
            "group_id": group,
            "bootstrap_servers": bootstrap,
            "network": self._network,
            "max_wait": 0.1,
            "handle_signals": True,
        }

    async def main(self) -> None:
        if self._dead:
            queue = DeadLetterQueue(self._dead[0])
            options = {**self._options, "dead_letter": queue}
            await ShareWorker(self._topic, self._handle, **options).run()
            return
        async with ShareConsumer(self._topic, **self._options) as consumer:
            async for record in consumer:
                self._on_received(record)

    async def _handle(self, record: Record[Any, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        self._on_received(record)

    def _on_received(self, record: Record[Any, Any]) -> None:
        sys.stderr.write(f"received {record.offset}\n")
        self._left -= 1
        if not self._left:
            self._network.on_records = self._stop

    async def _stop(self) -> None:
        await anyio.lowlevel.checkpoint()
        os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    anyio.run(Stopping(sys.argv[1:]).main)
