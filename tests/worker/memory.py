"""Topics and a share group in memory, for workers without Kafka.

`MemoryBroker` has the methods of `EmbeddedBroker` that tests of a worker's decisions
call. `tests.worker.memory_source` is the worker's source of its records. Waits take no
time in tests with a `virtual_clock`.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

import anyio

from sharecons.errors import BrokerError
from sharecons.producer.records import RecordPosition
from sharecons.protocol.codes import Code
from sharecons.record import RELEASE, RENEW, AcknowledgeType
from sharecons.testing import PartitionSnapshot, RecordSnapshot
from tests.waiting import until

__all__ = ["LATENCY", "Delivery", "MemoryBroker", "MemoryConfigs", "MemoryProducer"]

LATENCY: Final = 0.002
"""Seconds from a request to its response."""

Content = bytes | str | None
Headers = Sequence[tuple[str, bytes | None]]


class Delivery:
    """The state of one record in the group.

    Attributes:
        count: how often it was delivered.
        owner: the source that holds it until `deadline`, or None.
        is_finished: it was accepted or archived.
    """

    def __init__(self, record: RecordSnapshot) -> None:
        self.record = record
        self.count = 0
        self.owner: object = None
        self.deadline = math.inf
        self.is_finished = False


class Log(list[Delivery]):
    """The records of a topic, which has one partition."""

    @property
    def start(self) -> int:
        """The offset of the first record that is not finished."""
        open_ = (each.record.offset for each in self if not each.is_finished)
        return next(open_, len(self))


class Fault:
    """Disturbs the next requests of an API, as the faults of an embedded broker.

    Attributes:
        name: the error of the response; empty if the connection is cut.
        hits: how many requests it has disturbed.
    """

    def __init__(self, api: str, times: float) -> None:
        self.api, self.name = api, ""
        self.hits = 0
        self._times = times

    def cut(self) -> Self:
        return self

    hang_up = cut

    def refuse(self, error: str | Code) -> Self:
        self.name = error if isinstance(error, str) else error.name
        return self

    def undo(self) -> None:
        self._times = 0

    def disturbs(self, api: str) -> bool:
        """Return whether it disturbs a request that is sent now."""
        if api != self.api or self.hits >= self._times:
            return False
        self.hits += 1
        return True


class Faults(list[Fault]):
    """The faults of a broker, in the order in which they apply."""

    def on(self, api: str, *, times: float | None = 1) -> Fault:
        self.append(Fault(api, math.inf if times is None else times))
        return self[-1]

    def find(self, api: str) -> Fault | None:
        """Return the fault of a request that is sent now, if any."""
        return next((each for each in self if each.disturbs(api)), None)


class MemoryBroker:
    """Topics, and one share group that reads them all.

    Attributes:
        lock_duration, delivery_limit, window: the rules of the group; seconds, counts.
        renews: locks can be renewed; otherwise renewals fail.
        faults: of the APIs ShareFetch, ShareAcknowledge, ShareGroupHeartbeat, Produce.
        on_change: are called when records can be delivered, or rules have changed.
    """

    def __init__(self, *topics: str) -> None:
        self.logs = {topic: Log() for topic in topics}
        self.lock_duration = 30.0
        self.delivery_limit = 5
        self.window = 2000
        self.renews = True
        self.faults = Faults()
        self.on_change: list[Callable[[], None]] = []

    # As `EmbeddedBroker`.

    def create_topic(self, name: str, partitions: int = 1) -> None:
        assert partitions == 1, "an embedded broker has more"
        self.logs[name] = Log()

    def produce(
        self,
        topic: str,
        values: Iterable[Content],
        *,
        keys: Sequence[Content] | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        **_: object,
    ) -> None:
        for number, value in enumerate(values):
            key = keys[number] if keys else None
            self.append(topic, value, key, headers, timestamp)

    def records(self, topic: str) -> tuple[RecordSnapshot, ...]:
        return tuple(each.record for each in self.logs[topic])

    def set_group_config(self, group_id: str, config: Mapping[str, object]) -> None:
        for name, value in config.items():
            match name:
                case "share.record.lock.duration.ms":
                    self.lock_duration = float(str(value)) / 1000
                case "share.delivery.count.limit":
                    self.delivery_limit = int(str(value))
                case "share.partition.max.record.locks":
                    self.window = int(str(value))
                case "share.renew.acknowledge.enable":
                    self.renews = value == "true"
                case _:
                    raise LookupError(name)
        self._change()

    def group(self, group_id: str) -> "MemoryBroker":
        return self

    def partition(self, topic: str) -> PartitionSnapshot:
        return next(each for each in self.partitions if each.topic == topic)

    @property
    def partitions(self) -> tuple[PartitionSnapshot, ...]:
        """The partitions of the group, without records in flight."""
        return tuple(
            PartitionSnapshot(
                topic=topic,
                partition=0,
                start_offset=log.start,
                end_offset=len(log),
                in_flight=(),
            )
            for topic, log in self.logs.items()
        )

    def acquired(self, topic: str) -> list[int]:
        """Return the delivery counts of the records that are locked."""
        return [each.count for each in self.logs[topic] if each.owner is not None]

    async def wait_until_settled(self, group_id: str, topic: str = "orders") -> None:
        await until(lambda: self.logs[topic].start == len(self.logs[topic]))

    # Called by sources.

    def append(
        self,
        topic: str,
        value: Content,
        key: Content,
        headers: Headers,
        timestamp: int | None = None,
    ) -> int:
        """Write a record; return its offset."""
        log = self.logs[topic]
        record = RecordSnapshot(
            topic=topic,
            partition=0,
            offset=len(log),
            timestamp=round(time.time() * 1000) if timestamp is None else timestamp,
            key=_bytes(key),
            value=_bytes(value),
            headers=tuple(headers),
        )
        log.append(Delivery(record))
        self._change()
        return record.offset

    def available(self, topics: Iterable[str], now: float) -> Iterator[Delivery]:
        """Yield the records that can be delivered now."""
        for topic in topics:
            log = self.logs.get(topic, Log())
            start = log.start
            for each in log[start : start + self.window]:
                self._expire(each, now)
                if not each.is_finished and each.owner is None:
                    yield each

    def next_expiry(self, now: float) -> float:
        """Return when the next lock ends."""
        held = (each for log in self.logs.values() for each in log if each.owner)
        return min(
            (at for each in held if (at := each.deadline) > now), default=math.inf
        )

    def deliver(self, each: Delivery, owner: object, now: float) -> None:
        """Lock a record for a source."""
        each.count += 1
        each.owner, each.deadline = owner, now + self.lock_duration

    def settle(
        self, each: Delivery, owner: object, kind: AcknowledgeType, now: float
    ) -> bool:
        """Apply an acknowledgement; return False if its record is not held."""
        self._expire(each, now)
        if each.owner is not owner or (kind == RENEW and not self.renews):
            return False
        if kind == RENEW:
            each.deadline = now + self.lock_duration
            return True
        each.owner = None
        each.is_finished = kind != RELEASE or each.count >= self.delivery_limit
        self._change()
        return True

    def release_all(self, owner: object, now: float) -> None:
        """Release all records of a source: its connection has ended."""
        for log in self.logs.values():
            for each in log:
                self.settle(each, owner, RELEASE, now)

    def _expire(self, each: Delivery, now: float) -> None:
        if each.owner is not None and each.deadline <= now:
            each.owner = None
            each.is_finished = each.count >= self.delivery_limit

    def _change(self) -> None:
        for on_change in self.on_change:
            on_change()


class MemoryConfigs:
    """The rules of the group, as of the last reading (`SourceConfigs`)."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._listeners: list[Callable[[], object]] = []
        self._read()

    def subscribe(self, listener: Callable[[], object]) -> None:
        self._listeners.append(listener)

    async def read(self) -> None:
        await anyio.sleep(LATENCY)
        self._read()
        for listener in self._listeners:
            listener()

    def _read(self) -> None:
        self.delivery_limit = self._broker.delivery_limit
        self.window = self._broker.window
        self.renews: bool | None = self._broker.renews


class MemoryProducer:
    """Writes copies, as `IdempotentProducer`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    async def run(self) -> None:
        await anyio.sleep_forever()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        **_: Any,
    ) -> RecordPosition:
        await anyio.sleep(LATENCY)
        if fault := self._broker.faults.find("Produce"):
            raise BrokerError(
                f"cannot produce to topic {topic!r}: {fault.name}",
                code=Code[fault.name],
                name=fault.name,
            )
        offset = self._broker.append(topic, value, key, headers)
        return RecordPosition(topic, 0, offset)


def _bytes(content: Content) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
