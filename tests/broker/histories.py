"""Plays the same history on any Kafka, and returns its responses.

A history is a list of steps: writes, fetches, acknowledgements, expired locks, closed
sessions, cut connections. It is played by raw requests, with one connection for each
member, step by step. Acknowledgements are chosen at random, with a seed, from the
records that a member has acquired: they are equal on every Kafka with equal responses.
"""

import time
import uuid
from datetime import timedelta
from random import Random

from sharecons.testing.broker.batch_writer import NewRecord, encode_batch
from tests.broker.blocking_client import BlockingClient
from tests.broker.messages import base64_id
from tests.broker.steps import (
    POLL,
    Acknowledge,
    Close,
    Cut,
    Fetch,
    Produce,
    Reopen,
    Trim,
    Wait,
    choose_acknowledgements,
    forget,
)
from tests.waiting import until_true

__all__ = ["Player"]

SETTLED = 0.15  # seconds in which a broker notices a closed connection and writes state
TIMEOUT = 20.0


class Member:
    """A share session, and its acquired records."""

    def __init__(self, address, name):
        self._address = address
        self.name = name
        self.client = None
        self.epoch = 0
        self.held = []
        """Partitions and offsets that are acquired and not acknowledged."""

    def request(self, api, version, **values):
        if self.client is None:
            self.client = BlockingClient(self._address)
        return self.client.request(
            api,
            version,
            member_id=self.name,
            share_session_epoch=self.epoch,
            **values,
        )

    def cut(self):
        if self.client is not None:
            self.client.close()
        self.client, self.epoch, self.held = None, 0, []


class Player:
    """Plays histories with one group and one topic on one Kafka.

    `lock` is the group's lock duration in seconds. The topic and the group exist, and
    are not used otherwise.
    """

    def __init__(self, address, topic, group, lock, members=3):
        self._address = address
        self._topic, self.group, self._lock = topic, group, lock
        self._admin = BlockingClient(address)
        found = self._look_up()
        self.topic_id = found.topic_id
        self._partitions = range(len(found.partitions))
        names = (base64_id(uuid.uuid4()) for _ in range(members))
        self._members = [Member(address, name) for name in names]
        self._ends = [0 for _ in self._partitions]
        self._idle = Member(address, base64_id(uuid.uuid4()))

    def join(self):
        """Create the group and its share partitions."""
        self._until_done(
            lambda: self._admin.request(
                "find_coordinator", 4, key_type=0, coordinator_keys=(self.group,)
            ).coordinators[0]
        )
        member = {"member_id": base64_id(uuid.uuid4()), "member_epoch": 0}
        topics = (self._topic,)

        def has_partitions():
            nonlocal topics
            response = self._admin.request(
                "share_group_heartbeat",
                1,
                group_id=self.group,
                subscribed_topic_names=topics,
                **member,
            )
            if response.error_code:
                return False
            topics, member["member_epoch"] = None, response.member_epoch
            assigned = response.assignment
            return assigned is not None and assigned.topic_partitions

        until_true(has_partitions, TIMEOUT, what="the assignment", pause=0.1)
        self._stay()

    def _stay(self):
        """Initialise all partitions, and keep them initialised.

        A leader without a session of the group reads their states one by one, and which
        of them is ready first is random.
        """
        if len(self._partitions) > 1:
            self._fetch(self._idle, Fetch(0))
            pause(SETTLED)

    def play(self, steps):
        """Return the responses to the steps."""
        return [(step, self._step(step)) for step in steps]

    def state(self):
        """Return the share coordinator's state."""
        return [self._state(partition) for partition in self._partitions]

    def _state(self, partition):
        key = f"{self.group}:{base64_id(self.topic_id)}:{partition}"
        self._until_done(
            lambda: self._admin.request(
                "find_coordinator", 6, key_type=2, coordinator_keys=(key,)
            ).coordinators[0]
        )
        response = self._admin.request(
            "read_share_group_state",
            0,
            group_id=self.group,
            topics=(
                {
                    "topic_id": self.topic_id,
                    "partitions": ({"partition": partition, "leader_epoch": 0},),
                },
            ),
        )
        (found,) = response.results[0].partitions
        # Timers release records one by one, with overlapping writes. It is random
        # whether equal neighbours are merged, and whether final records at the start
        # are still part of the state.
        batches = []
        for each in found.state_batches:
            if not batches and each.delivery_state in (2, 4):
                continue
            same = each.delivery_state, each.delivery_count
            if batches and batches[-1][1:] == [each.first_offset - 1, same]:
                batches[-1][1] = each.last_offset
            else:
                batches.append([each.first_offset, each.last_offset, same])
        return found.error_code.name, batches

    def close(self):
        for member in (*self._members, self._idle):
            member.cut()
        self._admin.close()

    def _step(self, step):
        match step:
            case Produce(sizes, partition):
                return [self._produce(partition, size) for size in sizes]
            case Fetch():
                return self._fetch(self._members[step.member], step)
            case Acknowledge(member, seed, is_honest):
                return self._acknowledge(self._members[member], Random(seed), is_honest)
            case Trim(part, partition):
                return self._trim(partition, int(part * self._ends[partition]))
            case Close(member):
                return self._close(self._members[member])
            case Reopen(member):
                return self._reopen(self._members[member])
            case Cut(member):
                self._members[member].cut()
                pause(SETTLED)
            case Wait():
                pause(self._lock + SETTLED)
        return None

    def _produce(self, partition, size):
        batch = encode_batch([NewRecord(b"x")] * size, int(time.time() * 1000))
        response = self._admin.request(
            "produce",
            11,
            acks=-1,
            timeout=timedelta(seconds=5),
            topic_data=(
                {
                    "name": self._topic,
                    "partition_data": ({"index": partition, "records": batch},),
                },
            ),
        )
        (done,) = response.responses[0].partition_responses
        self._ends[partition] = done.base_offset + size
        return done.error_code.name, done.base_offset

    def _trim(self, partition, offset):
        what = {"partition_index": partition, "offset": offset}
        response = self._admin.request(
            "delete_records",
            2,
            timeout=timedelta(seconds=5),
            topics=({"name": self._topic, "partitions": (what,)},),
        )
        (done,) = response.topics[0].partitions
        return done.error_code.name, done.low_watermark

    def _fetch(self, member, step):
        batches = {}
        if step.acknowledge is not None and member.epoch:
            batches = choose_acknowledgements(member.held, Random(step.acknowledge))
        response = member.request(
            "share_fetch",
            2,
            group_id=self.group,
            max_wait=timedelta(seconds=POLL),
            min_bytes=1,
            max_bytes=step.max_bytes,
            max_records=step.max_records,
            batch_size=step.batch_size,
            share_acquire_mode=int(step.record_limit),
            topics=self._topics(
                batches if member.epoch else dict.fromkeys(self._partitions, ())
            ),
        )
        if not response.error_code:
            member.epoch += 1
        reported = []
        for part in (part for topic in response.responses for part in topic.partitions):
            where = int(part.partition_index)
            if not part.acknowledge_error_code:
                forget(member.held, where, batches.get(where, ()))
            ranges = [
                (r.first_offset, r.last_offset, r.delivery_count)
                for r in part.acquired_records
            ]
            for first, last, _ in ranges:
                member.held += [(where, o) for o in range(first, last + 1)]
            codes = part.error_code.name, part.acknowledge_error_code
            reported.append((where, *codes, ranges))
        # Kafka writes a fetch's acknowledgements while it responds.
        if batches:
            pause(SETTLED)
        return response.error_code.name, len(batches), sorted(reported)

    def _acknowledge(self, member, random, is_honest):
        some = member.held
        if not is_honest:
            some = [(0, offset) for offset in range(self._ends[0])]
        batches = choose_acknowledgements(some, random, may_renew=True)
        if not batches or not member.epoch:
            return None
        response = self._send_acknowledgements(member, batches)
        if not response.error_code:
            member.epoch += 1
        return self._reported(member, batches, response)

    def _close(self, member):
        if not member.epoch:
            return None
        member.epoch = -1
        response = self._send_acknowledgements(member, {})
        member.epoch, member.held = 0, []
        pause(SETTLED)
        return self._reported(member, {}, response)

    def _reopen(self, member):
        member.epoch = 0
        return self._fetch(member, Fetch(0, max_records=0))

    def _send_acknowledgements(self, member, batches):
        return member.request(
            "share_acknowledge",
            2,
            group_id=self.group,
            is_renew_ack=any(
                4 in types for part in batches.values() for *_, types in part
            ),
            topics=self._topics(batches),
        )

    def _reported(self, member, batches, response):
        reported = []
        for part in (part for topic in response.responses for part in topic.partitions):
            where = int(part.partition_index)
            reported.append((where, part.error_code.name))
            if not part.error_code:
                forget(member.held, where, batches[where])
        return response.error_code.name, sorted(reported)

    def _topics(self, batches):
        partitions = tuple(
            {
                "partition_index": index,
                "acknowledgement_batches": tuple(
                    {
                        "first_offset": first,
                        "last_offset": last,
                        "acknowledge_types": types,
                    }
                    for first, last, types in part
                ),
            }
            for index, part in batches.items()
        )
        if not partitions:
            return ()
        return ({"topic_id": self.topic_id, "partitions": partitions},)

    def _look_up(self):
        response = self._admin.request(
            "metadata", 12, topics=({"topic_id": None, "name": self._topic},)
        )
        return response.topics[0]

    def _until_done(self, find):
        until_true(
            lambda: not find().error_code, TIMEOUT, what="a coordinator", pause=0.1
        )


def pause(seconds):
    time.sleep(seconds)  # real time: brokers in threads and processes work meanwhile
