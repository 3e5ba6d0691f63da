"""Scripted members of a share group, over memory streams, in `virtual_time`."""

from contextlib import asynccontextmanager
from datetime import timedelta

import anyio

from sharecons.testing.broker.embedded import EmbeddedBroker
from tests.broker.async_client import Client
from tests.broker.messages import make_request

__all__ = [
    "ACCEPT",
    "REJECT",
    "RELEASE",
    "RENEW",
    "TOPIC",
    "Group",
    "Member",
    "acquired",
    "codes",
    "group_of",
    "parts",
    "run_together",
    "timed",
]

ACCEPT, RELEASE, REJECT, RENEW = (1,), (2,), (3,), (4,)
EARLIEST = {"share.auto.offset.reset": "earliest"}
TOPIC = "orders"


class Group:
    """Members of group g, and their brokers."""

    def __init__(self, kafka):
        self.kafka = kafka
        self._members = []

    @property
    def topic_id(self):
        return self.kafka.cluster.topics.by_name(TOPIC).topic_id

    @property
    def partitions(self):
        return self.kafka.cluster.share_partitions

    def member(self, name, node=1, **values):
        member = Member(self, name, self.kafka.connect(node), **values)
        self._members.append(member)
        return member

    def produce(self, count=10, partition=0, **values):
        self.kafka.produce(TOPIC, ["x"] * count, partition=partition, **values)

    def denied(self, resource, name):
        access = self.kafka.cluster.authorizer
        denies = access.denies
        access.denies = lambda operation, kind, what: (
            (operation, kind, what) == ("READ", resource, name)
            or denies(operation, kind, what)
        )

    async def close(self):
        for member in self._members:
            await member.cut()


class Member:
    def __init__(self, group, name, stream, version=2):
        self.group, self.name, self.version = group, name, version
        self.epoch = 0
        self.client = Client(stream)

    async def fetch(self, *partitions, wait=0.0, **values):
        """Fetch from these partitions, or from partition 0 in the first request."""
        named = {}
        if not partitions and not self.epoch:
            partitions = (0,)
        limits = {
            "max_wait": timedelta(seconds=wait),
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
        }
        if partitions:
            named["topics"] = self.named(*((each, ()) for each in partitions))
        response = await self.request("share_fetch", **{**limits, **named, **values})
        if not response.error_code:
            self.epoch += 1
        return response

    async def acknowledge(self, *batches, partition=0, **values):
        """Acknowledge offsets of one partition: first, last, types."""
        named = {"topics": self.named((partition, batches))} if batches else {}
        response = await self.request("share_acknowledge", **{**named, **values})
        if not response.error_code:
            self.epoch += 1
        return response

    async def close(self):
        self.epoch = -1
        return await self.acknowledge()

    async def cut(self):
        await self.client.stream.aclose()
        await anyio.wait_all_tasks_blocked()  # the broker has noticed

    async def request(self, api, **values):
        who = {
            "group_id": "g",
            "member_id": self.name,
            "share_session_epoch": self.epoch,
        }
        request = make_request(api, self.version, **{**who, **values})
        return await self.client.request(request)

    def named(self, *partitions, topic_id=None):
        return (
            {
                "topic_id": topic_id or self.group.topic_id,
                "partitions": tuple(
                    {
                        "partition_index": index,
                        "acknowledgement_batches": tuple(
                            {
                                "first_offset": first,
                                "last_offset": last,
                                "acknowledge_types": types,
                            }
                            for first, last, types in batches
                        ),
                    }
                    for index, batches in partitions
                ),
            },
        )


@asynccontextmanager
async def group_of(brokers=1, partitions=1, subscribed=True, **config):
    async with EmbeddedBroker(
        brokers=brokers, topics={TOPIC: partitions}, listen=False
    ) as kafka:
        dotted = {f"share.{key.replace('_', '.')}": v for key, v in config.items()}
        kafka.set_group_config("g", {**EARLIEST, **dotted})
        group = Group(kafka)
        for index in range(partitions if subscribed else 0):
            group.partitions.initialize("g", group.topic_id, index)
        yield group
        await group.close()


def parts(response):
    return [part for topic in response.responses for part in topic.partitions]


def acquired(response):
    return [
        (records.first_offset, records.last_offset, records.delivery_count)
        for part in parts(response)
        for records in part.acquired_records
    ]


def codes(response):
    return [part.error_code for part in parts(response)]


async def timed(work):
    began = anyio.current_time()
    result = await work
    return round(anyio.current_time() - began, 3), result


async def run_together(*works):
    """Run several functions, each after some seconds; return their results."""
    results = [None] * len(works)

    async def one(index, after, work):
        await anyio.sleep(after)
        results[index] = await timed(work())

    async with anyio.create_task_group() as tasks:
        for index, (after, work) in enumerate(works):
            tasks.start_soon(one, index, after, work)
    return results
