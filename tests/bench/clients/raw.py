"""The raw ceiling: a minimal ShareFetch loop, for comparison.

It sends one fetch at a time, accepts the records with the next fetch, decodes no
records and handles no errors. It supports one broker and any number of partitions.
"""

import argparse
import asyncio
import base64
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.share_fetch.v1.request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from kio.schema.share_fetch.v1.response import ShareFetchResponse
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.static.primitive import i8

from tests.bench.clients.common import Meter, Tally, arguments, print_result
from tests.bench.clients.connection import Connection

MAX_WAIT: Final = timedelta(seconds=0.5)  # of a fetch, as in Java's consumer
MAX_BYTES: Final = 50 << 20  # the default of Java's consumer
ACCEPT: Final = (1,)
HEARTBEAT_INTERVAL: Final = 0.05  # seconds, until there is an assignment
GROUP_KEY_TYPE: Final = i8(0)  # coordinator key type of groups

Accepts = dict[int, tuple[AcknowledgementBatch, ...]]


class Member:
    """A group member with the partitions of one topic on one broker."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._group = options.group
        self._topic = options.topic
        self._max_records = options.max_records
        self._max_bytes = options.max_bytes or MAX_BYTES
        # Kafka 4.1 accepts only Kafka's base64 form of a UUID as a member id.
        encoded = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=")
        self._id: Any = encoded.decode()
        self._topic_id: Any = None
        self.partitions: tuple[int, ...] = ()

    async def join(self, coordinator: Connection) -> None:
        await self._find_coordinator(coordinator)
        epoch = 0
        while True:
            response = await coordinator.send(
                self._heartbeat(epoch), ShareGroupHeartbeatResponse
            )
            if not response.error_code:
                epoch = response.member_epoch
            if response.assignment and response.assignment.topic_partitions:
                (assigned,) = response.assignment.topic_partitions
                self._topic_id = assigned.topic_id
                self.partitions = assigned.partitions
                return
            await asyncio.sleep(HEARTBEAT_INTERVAL)

    async def _find_coordinator(self, broker: Connection) -> None:
        """Find the coordinator, which makes a new broker create its internal topics."""
        wanted = FindCoordinatorRequest(
            key_type=GROUP_KEY_TYPE, coordinator_keys=(self._group,)
        )
        while True:
            response = await broker.send(wanted, FindCoordinatorResponse)
            if not response.coordinators[0].error_code:
                return
            await asyncio.sleep(HEARTBEAT_INTERVAL)

    def _heartbeat(self, epoch: Any) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=(self._topic,) if epoch == 0 else None,
        )

    def fetch(self, epoch: Any, accepts: Accepts) -> ShareFetchRequest:
        partitions: Any = tuple(
            FetchPartition(
                partition_index=partition,  # type: ignore[arg-type]
                acknowledgement_batches=accepts.get(partition, ()),
            )
            for partition in (accepts if epoch else self.partitions)
        )
        return ShareFetchRequest(
            group_id=self._group,
            member_id=self._id,
            share_session_epoch=epoch,
            max_wait=MAX_WAIT,  # type: ignore[arg-type]
            min_bytes=1,  # type: ignore[arg-type]
            max_bytes=self._max_bytes,  # type: ignore[arg-type]
            max_records=self._max_records,
            batch_size=self._max_records,
            topics=(FetchTopic(topic_id=self._topic_id, partitions=partitions),)
            if partitions
            else (),
            forgotten_topics_data=(),
        )


async def throughput(options: argparse.Namespace) -> object:
    meter, tally = Meter(), Tally(options.records)
    coordinator = await Connection.open(options.bootstrap)
    leader = await Connection.open(options.bootstrap)
    member = Member(options)
    with suppress(TimeoutError):
        async with asyncio.timeout(options.timeout):
            await member.join(coordinator)
            await read(leader, member, tally, meter)
    return meter.report(tally)


async def read(leader: Connection, member: Member, tally: Tally, meter: Meter) -> None:
    epoch, accepts = 0, Accepts()
    while tally.count < tally.wanted:
        response = await leader.send(member.fetch(epoch, accepts), ShareFetchResponse)
        if response.error_code:
            raise RuntimeError(f"ShareFetch failed: {response.error_code.name}")
        epoch += 1
        accepts, count = _acquired(response)
        if count:
            meter.on_first_record()
        tally.add(count, 0)


def _acquired(response: Any) -> tuple[Accepts, int]:
    accepts, count = Accepts(), 0
    for topic in response.responses:
        for part in topic.partitions:
            if part.acquired_records:
                accepts[part.partition_index] = tuple(
                    map(_accept_batch, part.acquired_records)
                )
                count += sum(
                    acquired.last_offset - acquired.first_offset + 1
                    for acquired in part.acquired_records
                )
    return accepts, count


def _accept_batch(acquired: Any) -> AcknowledgementBatch:
    return AcknowledgementBatch(
        first_offset=acquired.first_offset,
        last_offset=acquired.last_offset,
        acknowledge_types=ACCEPT,  # type: ignore[arg-type]
    )


def main() -> None:
    print_result(asyncio.run(throughput(arguments())))


if __name__ == "__main__":
    main()
