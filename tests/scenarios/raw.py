"""A group member that sends only the requests that a test calls."""

from collections.abc import Iterable
from typing import Any

from sharecons.config.validation import member_id_of, parse_bootstrap
from sharecons.net.connection import Connection
from sharecons.net.io.transport import TcpNetwork
from sharecons.protocol.codes import Code
from sharecons.protocol.group.messages import (
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
)
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import (
    PartitionResponse,
    Range,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
)
from tests.scenarios.repeating import repeat

ACCEPT, RELEASE, REJECT = b"\1", b"\2", b"\3"

_LOADING = (Code.COORDINATOR_LOAD_IN_PROGRESS, Code.NOT_COORDINATOR)

_WRONG_EPOCH = 2**31 - 1

Acks = dict[SharePartition, tuple[Range, ...]]


def acks(partition: SharePartition, *ranges: tuple[int, int, bytes]) -> Acks:
    return {partition: tuple(Range(*each) for each in ranges)}


def offsets(partition: PartitionResponse | None) -> list[int]:
    """Return the acquired offsets of a partition in a response."""
    if partition is None:
        return []
    return [o for first, last, _ in partition.acquired for o in range(first, last + 1)]


def delivery_counts(partition: PartitionResponse | None) -> dict[int, int]:
    """Return the delivery count of each acquired offset."""
    if partition is None:
        return {}
    return {
        offset: count
        for first, last, count in partition.acquired
        for offset in range(first, last + 1)
    }


class RawMember:
    """A member with a connection for heartbeats and one for its share session."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        member: str | None = None,
        client_id: str = "raw",
    ) -> None:
        self.group = group
        self.client_id = client_id
        self.member = member_id_of(member)
        self.member_epoch = 0
        self.session_epoch = 0
        self.assignment: frozenset[SharePartition] = frozenset()
        self._endpoint = parse_bootstrap(bootstrap)[0]
        self.coordinator: Connection
        self.leader: Connection

    async def connect(self) -> Connection:
        return await Connection.open(
            TcpNetwork(),
            self._endpoint,
            client_id=self.client_id,
            software_version="0",
            timeout=10,
        )

    async def __aenter__(self) -> "RawMember":
        self.coordinator = await self.connect()
        self.leader = await self.connect()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.coordinator.aclose()
        await self.leader.aclose()

    async def find_coordinator(self) -> FindCoordinatorResponse:
        request = FindCoordinator(group_id=self.group)
        found: FindCoordinatorResponse = await repeat(
            lambda: self.coordinator.send(request, 10),
            until=lambda response: response.error == Code.NONE,
        )
        return found

    async def heartbeat(self, epoch: int, *topics: str) -> HeartbeatResponse:
        response: HeartbeatResponse = await self.coordinator.send(
            Heartbeat(
                group_id=self.group,
                member_id=self.member,
                member_epoch=epoch,
                rack=None,
                topics=topics or None,
            ),
            10,
        )
        if response.error == Code.NONE:
            self.member_epoch = response.member_epoch
            if response.assignment is not None:
                self.assignment = response.assignment
        return response

    async def join(self, topic: str) -> list[SharePartition]:
        """Join, and send heartbeats until there is an assignment."""
        await self.find_coordinator()
        await self.join_without_assignment(topic)
        if not self.assignment:
            await repeat(
                lambda: self.heartbeat(self.member_epoch),
                until=lambda _: self.assignment,
            )
        return sorted(self.assignment)

    async def join_without_assignment(self, topic: str) -> HeartbeatResponse:
        """Send the first heartbeat again while the coordinator loads the group."""
        return await repeat(
            lambda: self.heartbeat(0, topic),
            until=lambda response: response.error not in _LOADING,
        )

    async def reconnect(self) -> None:
        """Close the connection of the share session, which ends it, and open another.

        A session that is opened before the broker has processed the end of the old
        connection can end with it (seen once on Kafka 4.3.0). So wait for that: while
        the old session exists, its broker rejects a wrong epoch with another error.
        """
        await self.leader.aclose()
        self.leader = await self.connect()
        await repeat(
            lambda: self.fetch(epoch=_WRONG_EPOCH),
            until=lambda response: response.error == Code.SHARE_SESSION_NOT_FOUND,
        )
        self.session_epoch = 0

    def fetch_request(
        self,
        *added: SharePartition,
        epoch: int | None = None,
        wait: float = 5.0,
        records: int = 500,
        limit: bool = False,
        acknowledge: Acks | None = None,
        forget: Iterable[SharePartition] = (),
        max_bytes: int = 50 << 20,
    ) -> ShareFetch:
        return ShareFetch(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.session_epoch if epoch is None else epoch,
            max_wait=wait,
            min_bytes=1,
            max_bytes=max_bytes,
            max_records=records,
            record_limit=limit,
            added=frozenset(added),
            forgotten=frozenset(forget),
            acknowledgements=acknowledge or {},
        )

    async def fetch(self, *added: SharePartition, **options: Any) -> ShareFetchResponse:
        request = self.fetch_request(*added, **options)
        response: ShareFetchResponse = await self.leader.send(request, 20)
        if response.error == Code.NONE and request.share_session_epoch >= 0:
            self.session_epoch = request.share_session_epoch + 1
        return response

    async def fetch_one(
        self, partition: SharePartition, **options: Any
    ) -> PartitionResponse | None:
        """Fetch once; return the partition's part of the response, or None."""
        added = () if self.session_epoch else (partition,)
        response = await self.fetch(*added, **options)
        assert Code.NONE == response.error
        return next(
            (p for p in response.partitions if p.share_partition == partition), None
        )

    async def acknowledge(
        self,
        acknowledgements: Acks,
        *,
        epoch: int | None = None,
        on: Connection | None = None,
    ) -> ShareAcknowledgeResponse:
        number = self.session_epoch if epoch is None else epoch
        request = ShareAcknowledge(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=number,
            is_renew_ack=False,
            acknowledgements=acknowledgements,
        )
        response: ShareAcknowledgeResponse = await (on or self.leader).send(request, 20)
        if response.error == Code.NONE and number >= 0:
            self.session_epoch = number + 1
        return response
