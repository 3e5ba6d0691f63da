"""The demo's topic and share group, which are deleted at the end."""

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
from sharecons.demo.requests import Request, Response
from sharecons.errors import BrokerError, Error
from sharecons.net.broker_pool import BrokerPool
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection
from sharecons.net.io.transport import ErrorMapping, TcpNetwork
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.group.messages import (
    LEAVE_EPOCH,
    FindCoordinator,
    Heartbeat,
    MetadataRequest,
)
from sharecons.protocol.partitions import Endpoint
from sharecons.records.encoder import NewRecord
from sharecons.version import VERSION
from sharecons.wire import consumer_apis

__all__ = ["Environment", "JobProducer", "demo_environment"]

SHORT_TIMEOUTS: Final[dict[str, str | None]] = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "5000",
    "share.session.timeout.ms": "6000",
    "share.heartbeat.interval.ms": "1000",
}
DEFAULT_MINIMUM_TIMEOUTS: Final[dict[str, str | None]] = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "15000",
}
"""The shortest times that a broker with default settings accepts
(group.share.min.record.lock.duration.ms)."""

PARTITION_COUNT: Final = 1
"""One partition serves any number of consumers of a share group. With several, a killed
consumer would keep its partitions until its session times out, after 45 seconds on most
brokers, and their jobs could wait that long."""

PARTITION: Final = 0
"""The number of the only partition."""

REQUEST_TIMEOUT: Final = 10.0  # seconds
RETRY_INTERVAL: Final = 0.05  # seconds
CLEANUP_TIMEOUT: Final = 10.0  # seconds


@dataclass(slots=True)
class Environment:
    """The topic, the share group and the broker connections of a demo.

    Attributes:
        connection: a connection to any broker.
        killed_members: ids of members that were killed and cannot leave the group.
    """

    bootstrap: str
    topic: str
    group_id: str
    connection: Connection
    killed_members: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def open_producer(self) -> AsyncIterator["JobProducer"]:
        """Run a producer of jobs; its errors are in an ExceptionGroup."""
        cluster = _new_cluster(self.bootstrap)
        async with BrokerPool(cluster) as brokers, anyio.create_task_group() as tasks:
            producer = IdempotentProducer(brokers)
            tasks.start_soon(producer.run)
            yield JobProducer(producer, self.topic)
            tasks.cancel_scope.cancel()

    async def fetch_lag(self) -> int | None:
        """Return the group's lag at the broker, or None if it is unavailable."""
        request = requests.describe_lag(self.group_id, self.topic)
        try:
            coordinator = await _find_coordinator(self)
            response = await _send(coordinator, request)
        except Error:
            return None  # the summary works without it
        return response.lag if response.code == Code.NONE else None


class JobProducer:
    """Writes jobs to the demo's topic."""

    def __init__(self, producer: IdempotentProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    async def produce(self, jobs: Sequence[int]) -> None:
        """Produce jobs, in one batch.

        Raises as `IdempotentProducer.send`; the jobs might have been written.
        """
        await self._producer.send_all(
            self._topic, _new_records(jobs), partition=PARTITION
        )


@asynccontextmanager
async def demo_environment(
    bootstrap: str, write_error: Callable[[str], object]
) -> AsyncIterator[Environment]:
    """Create a topic and a share group; always delete both at the end.

    Write an error for each of them that cannot be deleted.

    Raises:
        ConnectionFailedError: no broker can be reached.
        UnsupportedVersionError: the broker's share groups are missing or too old.
        BrokerError: the broker rejects a request.
    """
    connection = await _connect(bootstrap)
    name = f"sharecons-demo-{uuid4().hex[:8]}"
    environment = Environment(bootstrap, name, name, connection)
    try:
        await _prepare(environment)
        yield environment
    finally:
        with anyio.CancelScope(shield=True):
            for name in await _delete_all(environment):
                write_error(f"{name} could not be deleted")
        await connection.aclose()


def _new_cluster(bootstrap: str) -> Cluster:
    return Cluster(
        parse_bootstrap(bootstrap),
        TcpNetwork(),
        client_id="sharecons-demo",
        software_version=VERSION,
    )


async def _connect(bootstrap: str) -> Connection:
    cluster = _new_cluster(bootstrap)
    connection = await cluster.connect_any(timeout=REQUEST_TIMEOUT / 2)
    try:
        consumer_apis.check_share_groups(connection.served, connection.broker)
        consumer_apis.check_record_limit(connection.served, connection.broker)
    except BaseException:
        await connection.aclose()
        raise
    return connection


async def _prepare(environment: Environment) -> None:
    broker = await _any_broker(environment)
    request = requests.create_topic(environment.topic, PARTITION_COUNT)
    _raise_on_error(request, await _send(broker, request), environment.topic)
    request = requests.alter_group(environment.group_id, SHORT_TIMEOUTS)
    response = await _send(broker, request)
    if response.code != Code.NONE:
        request = requests.alter_group(environment.group_id, DEFAULT_MINIMUM_TIMEOUTS)
        _raise_on_error(request, await _send(broker, request), environment.group_id)
    with (
        ErrorMapping(f"waiting for a leader of {environment.topic}"),
        anyio.fail_after(REQUEST_TIMEOUT),
    ):
        await _wait_for_leader(environment)


async def _any_broker(environment: Environment) -> Endpoint:
    described = await environment.connection.send(
        MetadataRequest(names=(), ids=()), REQUEST_TIMEOUT
    )
    broker: Endpoint = next(iter(described.brokers.values()))
    return broker


async def _wait_for_leader(environment: Environment) -> None:
    """Return once the partition has a leader."""
    request = MetadataRequest(names=(environment.topic,), ids=())
    while True:
        described = await environment.connection.send(request, REQUEST_TIMEOUT)
        partition = described.topics[0].leaders.get(PARTITION)
        if partition is not None and partition.leader_id in described.brokers:
            return
        # Kafka has no request that waits for a leader.
        await anyio.sleep(RETRY_INTERVAL)


async def _delete_all(environment: Environment) -> list[str]:
    """Delete topic and group; return the names of what remains."""
    remaining = {f"group {environment.group_id}": _delete_group}
    remaining[f"topic {environment.topic}"] = _delete_topic
    with anyio.move_on_after(CLEANUP_TIMEOUT):
        for name, delete in list(remaining.items()):
            with suppress(Error):
                await delete(environment)
                del remaining[name]
    return list(remaining)


async def _delete_topic(environment: Environment) -> None:
    request = requests.delete_topic(environment.topic)
    _raise_on_error(
        request, await _send(await _any_broker(environment), request), environment.topic
    )


async def _delete_group(environment: Environment) -> None:
    """Remove killed members from the group, then delete it and its configs."""
    coordinator = await _find_coordinator(environment)
    connection = await _connect(str(coordinator))
    try:
        for member_id in environment.killed_members:
            await connection.send(
                _leave(environment.group_id, member_id), REQUEST_TIMEOUT
            )
    finally:
        await connection.aclose()
    request = requests.delete_group(environment.group_id)
    response = await _send(coordinator, request)
    if response.code != Code.GROUP_ID_NOT_FOUND:
        _raise_on_error(request, response, environment.group_id)
    request = requests.alter_group(environment.group_id, dict.fromkeys(SHORT_TIMEOUTS))
    _raise_on_error(request, await _send(coordinator, request), environment.group_id)


async def _find_coordinator(environment: Environment) -> Endpoint:
    request = FindCoordinator(group_id=environment.group_id)
    found = await environment.connection.send(request, REQUEST_TIMEOUT)
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


async def _send(broker: Endpoint, request: Request) -> Response:
    """Send a request on a new connection; raise ConnectionFailedError if it fails."""
    with ErrorMapping(f"{request.api} to {broker}"):
        with anyio.fail_after(REQUEST_TIMEOUT):
            transport = await TcpNetwork().connect(broker)
            try:
                frame = await transport.exchange(request.frame, REQUEST_TIMEOUT)
                return request.read(bytes(frame))
            finally:
                await transport.aclose()


def _raise_on_error(request: Request, response: Response, resource: str) -> None:
    if response.code == Code.NONE:
        return
    name = code_name(response.code)
    text = f"{request.api} of {resource}: {name}"
    if response.message:
        text += f" ({response.message})"
    raise BrokerError(text, code=response.code, name=name)


def _new_records(jobs: Sequence[int]) -> list[NewRecord]:
    # Timestamps increase, like the timestamps of a producer.
    clock = count(int(time.time() * 1000))
    return [
        NewRecord(value=f"job {job}".encode(), timestamp=next(clock)) for job in jobs
    ]
