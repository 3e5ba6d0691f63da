"""Members that only send heartbeats: `python -m tests.limits.crowd --help`.

They have partitions and fetch nothing. Hundreds share a connection, as a heartbeat
names its member. Prints a line of JSON once all members are admitted, and once all have
had an assignment; ends when standard input does.
"""

import argparse
import asyncio
import base64
import heapq
import sys
import time
import uuid
from typing import Any, Final

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse

from tests.bench.clients.common import print_result
from tests.bench.clients.connection import Connection

CONNECTIONS: Final = 8
INTERVAL: Final = 5.0
"""Seconds between two heartbeats of a member with partitions; Kafka's default."""

SOON: Final = 1.0
"""Seconds between two heartbeats of a member without partitions."""


class Crowd:
    """All members of this process.

    Args:
        group: the share group.
        topic: the topic that they subscribe to.
        size: number of members.
    """

    def __init__(self, group: str, topic: str, size: int) -> None:
        self._group = group
        self._topic = topic
        self._size = size
        self._began = time.monotonic()
        self._admitted = self._assigned = 0
        self._errors: set[str] = set()

    async def run(self, bootstrap: str) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(CONNECTIONS):
                count = len(range(number, self._size, CONNECTIONS))
                connection = await Connection.open(bootstrap)
                tasks.create_task(self._run_members(connection, count))

    async def _run_members(self, connection: Connection, count: int) -> None:
        due = [(0.0, _new_id(), 0, False) for _ in range(count)]
        heapq.heapify(due)
        while due:
            when, member, epoch, has_partitions = heapq.heappop(due)
            await asyncio.sleep(max(0.0, when - time.monotonic()))
            request = self._heartbeat(member, epoch)
            response = await connection.send(request, ShareGroupHeartbeatResponse)
            if response.error_code:
                self._on_error(response.error_code.name)
            elif epoch == 0:
                self._admitted += 1
                self._report("admitted", self._admitted)
            if not has_partitions and _has_partitions(response):
                has_partitions = True
                self._assigned += 1
                self._report("assigned", self._assigned)
            epoch = max(epoch, int(response.member_epoch))
            soon = INTERVAL if has_partitions else SOON
            heapq.heappush(
                due, (time.monotonic() + soon, member, epoch, has_partitions)
            )

    def _report(self, event: str, count: int) -> None:
        if count == self._size:
            taken = time.monotonic() - self._began
            print_result({"event": event, "seconds": taken})

    def _on_error(self, name: str) -> None:
        if name not in self._errors:
            self._errors.add(name)
            sys.stderr.write(f"a heartbeat was rejected: {name}\n")

    def _heartbeat(self, member: Any, epoch: Any) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=member,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=(self._topic,) if epoch == 0 else None,  # type: ignore[arg-type]
        )


def _new_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


def _has_partitions(response: Any) -> bool:
    return bool(response.assignment and response.assignment.topic_partitions)


async def _run(options: argparse.Namespace) -> None:
    crowd = Crowd(options.group, options.topic, options.members)
    members = asyncio.create_task(crowd.run(options.bootstrap))
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    await asyncio.wait({members, ended}, return_when=asyncio.FIRST_COMPLETED)
    if members.done():
        members.result()


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--bootstrap", required=True, help="address of the only broker")
    add("--group", required=True)
    add("--topic", required=True)
    add("--members", type=int, required=True)
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
