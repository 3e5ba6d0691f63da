"""The raw ceiling: the most that a broker serves to one Python process.

It fetches, accepts with the next fetch, decodes nothing, and answers no trouble:
a yardstick, not a client. One broker, any number of partitions.
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

from tests.bench.clients.common import Meter, Tally, arguments, said
from tests.bench.clients.connection import Connection

WAIT: Final = timedelta(seconds=0.5)  # of a fetch, as Java's consumer
MAX_BYTES: Final = 50 << 20
ACCEPT: Final = (1,)
PAUSE: Final = 0.05  # seconds between two heartbeats until there is an assignment
GROUP: Final = i8(0)  # the key type of a group's coordinator

Accepts = dict[int, tuple[AcknowledgementBatch, ...]]


class Member:
    """One that has joined, with its partitions: of one topic, on one broker."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._group = options.group
        self._topic = options.topic
        self._max_records = options.max_records
        # Kafka's own spelling of a UUID: 4.1 takes no other as a member id.
        spelt = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=")
        self._id: Any = spelt.decode()
        self._topic_id: Any = None
        self.partitions: tuple[int, ...] = ()

    async def join(self, coordinator: Connection) -> None:
        await self._find(coordinator)
        epoch = 0
        while True:
            answer = await coordinator.ask(
                self._heartbeat(epoch), ShareGroupHeartbeatResponse
            )
            if not answer.error_code:
                epoch = answer.member_epoch
            if answer.assignment and answer.assignment.topic_partitions:
                (assigned,) = answer.assignment.topic_partitions
                self._topic_id = assigned.topic_id
                self.partitions = assigned.partitions
                return
            await asyncio.sleep(PAUSE)

    async def _find(self, broker: Connection) -> None:
        """Ask for the coordinator, of which a fresh broker makes itself one."""
        wanted = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(self._group,))
        while True:
            answer = await broker.ask(wanted, FindCoordinatorResponse)
            if not answer.coordinators[0].error_code:
                return
            await asyncio.sleep(PAUSE)

    def _heartbeat(self, epoch: Any) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=(self._topic,) if epoch == 0 else None,
        )

    def fetch(self, epoch: Any, accepts: Accepts) -> ShareFetchRequest:
        listed: Any = tuple(
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
            max_wait=WAIT,  # type: ignore[arg-type]
            min_bytes=1,  # type: ignore[arg-type]
            max_bytes=MAX_BYTES,  # type: ignore[arg-type]
            max_records=self._max_records,
            batch_size=self._max_records,
            topics=(FetchTopic(topic_id=self._topic_id, partitions=listed),)
            if listed
            else (),
            forgotten_topics_data=(),
        )


async def throughput(options: argparse.Namespace) -> object:
    meter, tally = Meter(), Tally(options.records)
    coordinator = await Connection.open(options.bootstrap)
    leader = await Connection.open(options.bootstrap)
    member = Member(options)
    with suppress(TimeoutError):
        async with asyncio.timeout(options.patience):
            await member.join(coordinator)
            await read(leader, member, tally, meter)
    return meter.report(tally)


async def read(leader: Connection, member: Member, tally: Tally, meter: Meter) -> None:
    epoch, accepts = 0, Accepts()
    while tally.count < tally.wanted:
        answer = await leader.ask(member.fetch(epoch, accepts), ShareFetchResponse)
        if answer.error_code:
            raise RuntimeError(f"a fetch was refused: {answer.error_code.name}")
        epoch += 1
        accepts, count = _acquired(answer)
        if count:
            meter.first()
        tally.add(count, 0)


def _acquired(answer: Any) -> tuple[Accepts, int]:
    accepts, count = Accepts(), 0
    for topic in answer.responses:
        for part in topic.partitions:
            if part.acquired_records:
                accepts[part.partition_index] = tuple(
                    map(_accepted, part.acquired_records)
                )
                count += sum(
                    acquired.last_offset - acquired.first_offset + 1
                    for acquired in part.acquired_records
                )
    return accepts, count


def _accepted(acquired: Any) -> AcknowledgementBatch:
    return AcknowledgementBatch(
        first_offset=acquired.first_offset,
        last_offset=acquired.last_offset,
        acknowledge_types=ACCEPT,  # type: ignore[arg-type]
    )


def main() -> None:
    said(asyncio.run(throughput(arguments())))


if __name__ == "__main__":
    main()
