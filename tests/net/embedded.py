"""Embedded brokers for tests on a `virtual_clock`, and the requests they receive."""

import math
from collections import Counter
from contextlib import asynccontextmanager

import anyio

from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker, OffsetState
from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.codec import encode_response

__all__ = [
    "GROUP",
    "LATENCY",
    "STORM",
    "SlowNetwork",
    "accepted",
    "accepted_offsets",
    "busiest_second",
    "consuming",
    "limit_versions",
    "next_record",
    "no_leader",
    "read_records",
    "record_requests",
    "refuse",
    "requests",
    "running",
]

LATENCY = 0.001
"""Seconds per request: on a virtual clock, a request storm would never end without."""

STORM = 25
"""More requests of one kind in a second than this are too many."""

GROUP = "billing"


class SlowNetwork:
    """Connects to an embedded broker over memory; each request takes `latency`.

    Attributes:
        connects: the ports of all attempts to connect, in order.
        open: the number of connections that the client has not closed.
    """

    def __init__(self, broker, latency=LATENCY):
        self._broker = broker
        self.latency = latency
        self.connects = []
        self.open = 0

    async def connect(self, endpoint):
        self.connects.append(endpoint.port)
        await anyio.sleep(self.latency)
        transport = await self._broker.network.connect(endpoint)
        self.open += 1
        return SlowTransport(transport, self)

    def on_closed(self):
        self.open -= 1


class SlowTransport:
    """A connection of a SlowNetwork."""

    def __init__(self, transport, network):
        self._transport = transport
        self._network = network
        self._closed = False

    async def exchange(self, data, timeout):
        with anyio.fail_after(timeout):
            await anyio.sleep(self._network.latency)
            return await self._transport.exchange(data, timeout)

    async def idle(self, wait, lost):
        await self._transport.idle(wait, lost)

    async def aclose(self):
        if not self._closed:
            self._closed = True
            self._network.on_closed()
        await self._transport.aclose()


@asynccontextmanager
async def running(records=0, *, brokers=1, partitions=1, topic="orders", settings=None):
    """Run brokers with a topic; broker 1 leads partition 0 and coordinates the group.

    The records 0, 1, 2, … are in partition 0. Heartbeats have Kafka's interval of 5 s.
    """
    settings = {"group.share.assignment.interval.ms": 0, **(settings or {})}
    async with EmbeddedBroker(
        brokers=brokers, settings=settings, listen=False
    ) as broker:
        broker.move_coordinator(GROUP, to=1)
        broker.set_group_config(GROUP, {"share.auto.offset.reset": "earliest"})
        if topic is not None:
            broker.create_topic(topic, partitions)
            for partition in range(partitions):
                broker.move_leader(topic, partition, to=1 + partition % brokers)
            if records:
                values = [b"%d" % number for number in range(records)]
                broker.produce(topic, values, partition=0)
        yield broker


@asynccontextmanager
async def consuming(broker, *, network=None, within=1000, **options):
    """Consume `orders` for at most `within` seconds; broker 1 is the bootstrap."""
    with anyio.fail_after(within):
        async with ShareConsumer(
            "orders",
            group_id=GROUP,
            bootstrap_servers=broker.brokers[1],
            network=network or SlowNetwork(broker),
            **options,
        ) as consumer:
            yield consumer


async def next_record(consumer, within=60.0):
    """Return the next record, or None after `within` seconds."""
    with anyio.move_on_after(within):
        return await anext(aiter(consumer))
    return None


async def read_records(consumer, count):
    """Return the next records."""
    with anyio.fail_after(100):
        loop = aiter(consumer)
        return [await anext(loop) for _ in range(count)]


def requests(broker, api, since=-math.inf, node=None):
    """Return the requests of an API that were received after a time."""
    return [
        each
        for each in broker.requests
        if each.api == api and each.at >= since and node in (None, each.node_id)
    ]


def record_requests(broker, api):
    """Return a list that gets the fields and the context of each later request.

    Call it before other faults for the API: the first fault takes a request.
    """
    recorded = []

    def record(request, context):
        recorded.append((request, context))
        return False

    broker.faults.on(api, times=None, where=record).lose()
    return recorded


def busiest_second(broker):
    """Return the maximum number of requests of one API in one second."""
    seconds = Counter((each.api, int(each.at)) for each in broker.requests)
    return max(seconds.values(), default=0)


def accepted(broker):
    """Return the number of records of partition 0 before the first unsettled one."""
    return broker.group(GROUP).partition("orders", 0).start_offset or 0


def accepted_offsets(broker):
    """Return the offsets of partition 0 that are acknowledged.

    Archived ones are included if no record before them is unsettled.
    """
    partition = broker.group(GROUP).partition("orders", 0)
    return set(range(partition.start_offset or 0)) | {
        each.offset
        for each in partition.in_flight
        if each.state == OffsetState.ACKNOWLEDGED
    }


def limit_versions(broker, node=None, **highest):
    """Limit the version of each API; None is for an API that the broker lacks."""
    names = {key: api.name for key, api in APIS.items()}

    def limited(response, context):
        keys = []
        for each in response["api_keys"]:
            limit = highest.get(names[each["api_key"]], each["max_version"])
            if limit is not None:
                keys.append({**each, "max_version": min(limit, each["max_version"])})
        return {**response, "api_keys": keys}

    return broker.faults.on("ApiVersions", times=None, node=node).change(limited)


def no_leader():
    """Return the leader and epoch of responses that have none."""
    return -1, -1


def refuse(fault, code):
    """Let a fault refuse requests, even with 9999; return it."""
    if code == 9999:
        return fault.respond(_respond_with_error_9999)
    return fault.refuse(code)


async def _respond_with_error_9999(request, context):
    """Send a response with an error that no Kafka has, and that no codec can encode.

    For APIs whose response has a throttle time and then the error.
    """
    frame = encode_response(context.header, {"error_code": -1}, context.version)
    header = 4 + 4 + 1  # length, correlation id, tagged fields
    error = header + 4
    changed = frame[:error] + (9999).to_bytes(2, "big") + frame[error + 2 :]
    await context.connection.send(changed)
