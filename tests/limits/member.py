"""Members of share groups in one process: `python -m tests.limits.member JSON`.

The argument has the address of a broker, and the group and topics of each member. The
program prints a line of JSON for each event of a member: `joined` with its first
record, its `assignment` when that has changed, `left` when it has closed. Times are of
a clock that all processes share. A line `leave NUMBER` on standard input closes one.
"""

import asyncio
import json
import sys
import time
from typing import Any, Final

import anyio

from sharecons import ShareConsumer
from tests.bench.clients.common import memory_bytes, print_result

LOOK: Final = 0.02
"""Seconds between two looks at assignments; only while `watch` is on."""


class Members:
    """Runs members, and prints their events.

    Args:
        bootstrap: address of a broker.
        seats: the group and the topics of each member.
    """

    def __init__(self, bootstrap: str, seats: list[tuple[str, list[str]]]) -> None:
        self._consumers = [
            ShareConsumer(*topics, group_id=group, bootstrap_servers=bootstrap)
            for group, topics in seats
        ]
        self._scopes = [anyio.CancelScope() for _ in seats]
        self._watched = anyio.CancelScope()
        self.received = 0

    async def run(self) -> None:
        """Run until all members have left."""
        commands = asyncio.create_task(self._follow_commands())
        async with anyio.create_task_group() as tasks:
            for number in range(len(self._consumers)):
                tasks.start_soon(self._run_member, number)
        commands.cancel()

    async def _run_member(self, number: int) -> None:
        began, consumer, is_first = time.monotonic(), self._consumers[number], True
        async with consumer:
            with self._scopes[number]:
                async for _ in consumer:
                    if is_first:
                        _print("joined", number, seconds=time.monotonic() - began)
                        is_first = False
                    self.received += 1
            leaving = time.monotonic()
        _print("left", number, seconds=time.monotonic() - leaving)

    async def _follow_commands(self) -> None:
        lines = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(lines)
        await loop.connect_read_pipe(lambda: protocol, sys.stdin)
        looks: asyncio.Task[None] | None = None
        while line := await lines.readline():
            command, _, number = line.decode().strip().partition(" ")
            match command:
                case "leave":
                    self._scopes[int(number)].cancel()
                case "received":
                    print_result({"event": "received", "count": self.received})
                case "watch":
                    looks = looks or asyncio.create_task(self._watch_assignments())
                case "unwatch" if looks is not None:
                    looks.cancel()
                    looks = None
        for scope in self._scopes:
            scope.cancel()

    async def _watch_assignments(self) -> None:
        known: list[Any] = [None] * len(self._consumers)
        while True:
            for number, consumer in enumerate(self._consumers):
                held = consumer.assignment
                if held != known[number]:
                    known[number] = held
                    places = sorted(f"{topic}:{part}" for topic, part in held)
                    _print("assignment", number, partitions=places)
            await anyio.sleep(LOOK)


def _print(event: str, member: int, **fields: Any) -> None:
    print_result({"event": event, "member": member, "at": time.monotonic(), **fields})


async def _run(options: dict[str, Any]) -> None:
    await Members(options["bootstrap"], options["seats"]).run()


def main() -> None:
    options = json.loads(sys.argv[1])
    print_result({"event": "ready", "memory": memory_bytes("VmRSS")})
    anyio.run(_run, options)


if __name__ == "__main__":
    main()
