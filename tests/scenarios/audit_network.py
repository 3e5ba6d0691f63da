"""The connections of one life, which can be cut, and checks of what they send.

Each request is checked when the client sends it: it must acknowledge only records that
the member has acquired at this moment, and accept only what it is allowed to accept.

All times are of the event loop (`virtual_time`).
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import anyio

from sharecons.testing import EmbeddedBroker
from sharecons.testing.broker.codec import decode_request
from sharecons.testing.broker.memory import MemoryStream, MemoryTransport
from sharecons.testing.broker.share.deliveries import (
    AcknowledgementBatch,
    AcknowledgeType,
    State,
)
from sharecons.testing.broker.share.deliveries import Delivery as Delivered
from sharecons.testing.broker.share.partitions import SharePartitionKey
from sharecons.testing.broker.share_requests import acknowledgements
from tests.net.embedded import LATENCY
from tests.scenarios.audit_events import GROUP
from tests.scenarios.audit_journal import Delivery
from tests.scenarios.share_workers import Position

__all__ = ["AuditNetwork", "Sent", "ends_of"]

SHARE_FETCH: Final = 78
SHARE_APIS: Final = (SHARE_FETCH, 79)  # and ShareAcknowledge

SIZE_WITHOUT_RECORDS: Final = 80
"""The maximum size of a response to a fetch that has acquired nothing."""


class Sent(NamedTuple):
    """An acknowledgement of one record that a life sends.

    Attributes:
        seconds: the time of the event loop.
        held: True if the member has acquired the record at this time.
        ends: the end offset of each partition with copies of records, at this time.
    """

    kind: AcknowledgeType
    delivery: Delivery
    seconds: float
    held: bool
    ends: dict[tuple[str, int], int]


class AuditNetwork:
    """Connects the client of one life to the embedded broker, over memory.

    Attributes:
        member_id: the id of the life's member; set this before the first request.
        arrived: deliveries whose response the client has received, and when.
        losses: when a connection was lost, or closed.

    Args:
        copies: the topics whose records are copies of failed ones.
        on_sent: is called with each acknowledgement that is sent, except renewals of
            locks that are held.
    """

    def __init__(
        self,
        broker: EmbeddedBroker,
        life: int,
        copies: tuple[str, ...],
        on_sent: Callable[[Sent], None],
    ) -> None:
        self.is_killed = False
        self._broker = broker
        self._life = life
        self.member_id = ""
        self.arrived: dict[Delivery, float] = {}
        self.losses: list[float] = []
        self._copies = copies
        self._on_sent = on_sent
        self._streams: list[MemoryStream] = []
        self._nodes = {
            int(address.rpartition(":")[2]): node
            for node, address in broker.brokers.items()
        }

    async def connect(self, endpoint: Any) -> "AuditTransport":
        await self.wait()
        stream = self._broker.connect(endpoint.port)
        self._streams.append(stream)
        return AuditTransport(stream, self, endpoint.port)

    async def wait(self) -> None:
        """Wait for the latency of a request; for ever once the life is killed."""
        await anyio.sleep(LATENCY)
        if self.is_killed:
            await anyio.sleep_forever()

    async def cut(self) -> None:
        """Cut all connections."""
        self.on_lost()  # a killed client does not notice it
        streams, self._streams = self._streams, []
        for stream in streams:
            await stream.send_eof()

    async def kill(self) -> None:
        """Cut all connections and open no others: the process is gone."""
        self.is_killed = True
        await self.cut()

    def on_lost(self) -> None:
        self.losses.append(anyio.current_time())

    def on_response(self, data: bytes, port: int) -> None:
        """Enter the deliveries of a response that has arrived at the client."""
        if self.is_killed or int.from_bytes(data[4:6], "big") != SHARE_FETCH:
            return
        now = anyio.current_time()
        node = self._nodes[port]
        for topic in self._broker.cluster.topics:
            for partition in topic.partitions:
                if partition.leader != node:
                    continue
                states = self._states(topic.topic_id, partition.index)
                for offset, state in states.items():
                    if self._is_mine(state):
                        at = Position(topic.name, partition.index, offset)
                        each = Delivery(self._life, at, state.count)
                        self.arrived.setdefault(each, now)

    def check(self, data: bytes) -> None:
        """Pass the acknowledgements of a request to `on_sent`."""
        if self.is_killed or int.from_bytes(data[4:6], "big") not in SHARE_APIS:
            return
        _, request = decode_request(bytes(data[4:]))
        for sent in self._sent(request):
            if sent.kind is not AcknowledgeType.RENEW or not sent.held:
                self._on_sent(sent)

    def _sent(self, request: Any) -> Iterator[Sent]:
        now, ends = anyio.current_time(), ends_of(self._broker, self._copies)
        for (topic_id, partition), batches in acknowledgements(request).items():
            topic = self._broker.cluster.topics.by_id(topic_id)
            assert topic is not None
            states = self._states(topic_id, partition) if batches else {}
            for offset, kind in _kinds(batches):
                state = states.get(offset, Delivered(State.AVAILABLE, 0))
                at = Position(topic.name, partition, offset)
                delivery = Delivery(self._life, at, state.count)
                yield Sent(kind, delivery, now, self._is_mine(state), ends)

    def _is_mine(self, state: Delivered) -> bool:
        return state.state is State.ACQUIRED and state.member == self.member_id

    def _states(self, topic_id: Any, partition: int) -> dict[int, Delivered]:
        key = SharePartitionKey(GROUP, topic_id, partition)
        _, runs = self._broker.cluster.share_partitions.in_flight(key)
        return {
            offset: run.delivery
            for run in runs
            for offset in range(run.first_offset, run.last_offset + 1)
        }


def _kinds(
    batches: Sequence[AcknowledgementBatch],
) -> Iterator[tuple[int, AcknowledgeType]]:
    """Yield each offset of a partition's acknowledgements, and its type."""
    for first, last, types in batches:
        for offset in range(first, last + 1):
            kind = types[0] if len(types) == 1 else types[offset - first]
            yield offset, AcknowledgeType(kind)


class AuditTransport:
    """A connection of an AuditNetwork."""

    def __init__(self, stream: MemoryStream, network: AuditNetwork, port: int) -> None:
        self._stream = stream
        self._transport = MemoryTransport(stream)
        self._network = network
        self._port = port

    async def exchange(self, data: bytes, timeout: float) -> memoryview:
        try:
            with anyio.fail_after(timeout):
                await self._stream.send(b"")  # raises if the connection is cut
                self._network.check(data)
                await self._network.wait()
                response = await self._transport.exchange(data, timeout)
        except Exception:
            self._network.on_lost()
            raise
        if len(response) > SIZE_WITHOUT_RECORDS:
            self._network.on_response(data, self._port)
        return response

    async def idle(
        self, wait: Callable[[], Awaitable[None]], lost: Callable[[Exception], None]
    ) -> None:
        def note_and_lose(error: Exception) -> None:
            self._network.on_lost()
            lost(error)

        await self._transport.idle(wait, note_and_lose)

    async def aclose(self) -> None:
        self._network.on_lost()
        await self._transport.aclose()


def ends_of(
    broker: EmbeddedBroker, topics: tuple[str, ...]
) -> dict[tuple[str, int], int]:
    """Return the end offset of each partition of some topics."""
    return {
        (name, partition.index): partition.log.end_offset
        for name in topics
        if (topic := broker.cluster.topics.by_name(name)) is not None
        for partition in topic.partitions
    }
