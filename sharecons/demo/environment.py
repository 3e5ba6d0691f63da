"""The ground that a demo plays on: a topic and a group of its own, gone afterwards."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final
from uuid import uuid4

import anyio

from sharecons.config.validation import parse_bootstrap
from sharecons.demo import requests
from sharecons.demo.requests import Reply, Request
from sharecons.errors import BrokerError, Error
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection
from sharecons.net.io.transport import ErrorMapping, TcpNetwork
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.messages import (
    LEAVE_EPOCH,
    DescribeTopics,
    Endpoint,
    FindCoordinator,
    Heartbeat,
)
from sharecons.records.encoder import NewRecord, encode
from sharecons.version import VERSION
from sharecons.wire import consumer_apis

__all__ = ["Environment", "demo_environment"]

SHORT: Final[dict[str, str | None]] = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "5000",
    "share.session.timeout.ms": "6000",
    "share.heartbeat.interval.ms": "1000",
}
SHORTEST_BY_DEFAULT: Final[dict[str, str | None]] = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "15000",
}
"""What a broker takes that was not told of shorter times
(group.share.min.record.lock.duration.ms)."""

PARTITIONS: Final = 1
"""Enough for any number of consumers, which is the point. And who is killed keeps its
partitions until its session ends, 45 seconds on most brokers; with more of them
than one, some would wait so long for a consumer that has nothing else to do."""

ONLY: Final = 0
"""That one's number."""

NOBODY: Final = Endpoint("", 0)
PATIENCE: Final = 10.0  # seconds for one answer
PAUSE: Final = 0.05
UNDERTAKING: Final = 10.0  # seconds to leave nothing behind


@dataclass(slots=True)
class Environment:
    """Where jobs are written and worked.

    Attributes:
        connection: with any broker, for small questions.
        leader: the broker that jobs are written to.
        dead: ids of members that cannot leave the group by themselves.
    """

    bootstrap: str
    topic: str
    group_id: str
    connection: Connection
    leader: Endpoint = NOBODY
    dead: list[str] = field(default_factory=list)

    async def write(self, jobs: Sequence[int]) -> None:
        """Write jobs.

        Raises:
            Error: whether they were written is unknown.
        """
        request = requests.produce(self.topic, ONLY, _batch(jobs))
        _check(request, await _ask(self.leader, request), self.topic)

    async def lag(self) -> int | None:
        """How many jobs the broker itself counts as open; None if it does not tell."""
        request = requests.describe_lag(self.group_id, self.topic)
        try:
            coordinator = await _coordinator(self)
            answer = await _ask(coordinator, request)
        except Error:
            return None  # the numbers of ours stand without it
        return answer.number if answer.code == Code.NONE else None


@asynccontextmanager
async def demo_environment(
    bootstrap: str, complain: Callable[[str], object]
) -> AsyncIterator[Environment]:
    """Make a topic and a group; delete both in the end, whatever happened.

    What cannot be deleted is complained of.

    Raises:
        ConnectionFailedError: nobody is there.
        UnsupportedVersionError: the broker has no share groups, or old ones.
        BrokerError: the broker refuses what is needed.
    """
    connection = await _connected(bootstrap)
    name = f"sharecons-demo-{uuid4().hex[:8]}"
    place = Environment(bootstrap, name, name, connection)
    try:
        await _prepare(place)
        yield place
    finally:
        with anyio.CancelScope(shield=True):
            for left in await _clear(place):
                complain(f"{left} could not be deleted")
        await connection.aclose()


async def _connected(bootstrap: str) -> Connection:
    cluster = Cluster(
        parse_bootstrap(bootstrap),
        TcpNetwork(),
        client_id="sharecons-demo",
        software_version=VERSION,
    )
    connection = await cluster.connect_any(timeout=PATIENCE / 2)
    try:
        consumer_apis.check_share_groups(connection.served, connection.broker)
        consumer_apis.check_record_limit(connection.served, connection.broker)
    except BaseException:
        await connection.aclose()
        raise
    return connection


async def _prepare(place: Environment) -> None:
    broker = await _any_broker(place)
    request = requests.create_topic(place.topic, PARTITIONS)
    _check(request, await _ask(broker, request), place.topic)
    request = requests.alter_group(place.group_id, SHORT)
    answer = await _ask(broker, request)
    if answer.code != Code.NONE:
        request = requests.alter_group(place.group_id, SHORTEST_BY_DEFAULT)
        _check(request, await _ask(broker, request), place.group_id)
    with (
        ErrorMapping(f"waiting for a leader of {place.topic}"),
        anyio.fail_after(PATIENCE),
    ):
        place.leader = await _leader(place)


async def _any_broker(place: Environment) -> Endpoint:
    described = await place.connection.ask(DescribeTopics(names=(), ids=()), PATIENCE)
    broker: Endpoint = next(iter(described.brokers.values()))
    return broker


async def _leader(place: Environment) -> Endpoint:
    """The address of the partition's leader, as soon as it has one."""
    question = DescribeTopics(names=(place.topic,), ids=())
    while True:
        described = await place.connection.ask(question, PATIENCE)
        partition = described.topics[0].leaders.get(ONLY)
        if partition is not None and partition.leader_id in described.brokers:
            leader: Endpoint = described.brokers[partition.leader_id]
            return leader
        # The broker offers nothing to wait for but asking again.
        await anyio.sleep(PAUSE)


async def _clear(place: Environment) -> list[str]:
    """Delete what was made; gives what is left, if that fails or takes too long."""
    left = {f"group {place.group_id}": _delete_group}
    left[f"topic {place.topic}"] = _delete_topic
    with anyio.move_on_after(UNDERTAKING):
        for what, delete in list(left.items()):
            with suppress(Error):
                await delete(place)
                del left[what]
    return list(left)


async def _delete_topic(place: Environment) -> None:
    request = requests.delete_topic(place.topic)
    _check(request, await _ask(await _any_broker(place), request), place.topic)


async def _delete_group(place: Environment) -> None:
    """Delete the group and its configs; who was killed is made to leave before."""
    coordinator = await _coordinator(place)
    connection = await _connected(str(coordinator))
    try:
        for member_id in place.dead:
            await connection.ask(_leave(place.group_id, member_id), PATIENCE)
    finally:
        await connection.aclose()
    request = requests.delete_group(place.group_id)
    answer = await _ask(coordinator, request)
    if answer.code != Code.GROUP_ID_NOT_FOUND:
        _check(request, answer, place.group_id)
    request = requests.alter_group(place.group_id, dict.fromkeys(SHORT))
    _check(request, await _ask(coordinator, request), place.group_id)


async def _coordinator(place: Environment) -> Endpoint:
    question = FindCoordinator(group_id=place.group_id)
    found = await place.connection.ask(question, PATIENCE)
    endpoint: Endpoint = found.endpoint
    return endpoint


def _leave(group_id: str, member_id: str) -> Heartbeat:
    return Heartbeat(
        group_id=group_id,
        member_id=member_id,
        member_epoch=LEAVE_EPOCH,
        rack=None,
        topics=None,
    )


async def _ask(broker: Endpoint, request: Request) -> Reply:
    """Ask one thing, on a connection of its own; raises ConnectionFailedError."""
    with ErrorMapping(f"{request.api} to {broker}"):
        with anyio.fail_after(PATIENCE):
            wire = await TcpNetwork().connect(broker)
            try:
                await wire.send(request.frame)
                return request.read(bytes(await wire.receive()))
            finally:
                await wire.aclose()


def _check(request: Request, answer: Reply, what: str) -> None:
    if answer.code == Code.NONE:
        return
    name = code_name(answer.code)
    text = f"{request.api} of {what}: {name}"
    if answer.message:
        text += f" ({answer.message})"
    raise BrokerError(text, code=answer.code, name=name)


def _batch(jobs: Sequence[int]) -> bytes:
    # One after the other in time, as a producer would have them.
    clock = count(int(time.time() * 1000))
    return encode(
        [NewRecord(value=f"job {job}".encode(), timestamp=next(clock)) for job in jobs]
    )
