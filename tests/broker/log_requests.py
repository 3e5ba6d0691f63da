"""Requests that write and read logs, to the embedded broker or a real Kafka."""

import uuid
from dataclasses import dataclass
from datetime import timedelta

from kio.schema.errors import ErrorCode

from tests.broker.blocking_client import BlockingClient
from tests.broker.raw_batches import batches_in

__all__ = ["Place", "Talk", "new_topic", "offsets_in", "parts", "produce_batch"]

BUSY = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
    ErrorCode.concurrent_transactions,
)
RETRIES = 200  # retries until a real coordinator is ready


@dataclass(frozen=True)
class Place:
    name: str
    topic_id: uuid.UUID


def new_topic(either, **created):
    """Create a topic; return its name and id."""
    name = either.create_topic(**created)
    topics = either.request(
        "metadata",
        12,
        topics=[{"name": name}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    ).topics
    return Place(name, topics[0].topic_id)


def produce_batch(kafka, topic, records):
    """Write a batch that was made by hand to partition 0."""
    with BlockingClient(kafka.bootstrap_servers) as client:
        place = Place(topic, uuid.UUID(int=0))  # version 11 has no id
        done = Talk(client).produce(place, records, version=11)
    assert not done.error_code


class Talk:
    """Requests about one partition; methods return its part of the response."""

    def __init__(self, either):
        self.either = either
        self.request = either.request

    def produce(self, place, records, version=13, *, partition=0, acks=-1, tx=None):
        partitions = [{"index": partition, "records": records}]
        topic = {"topic_id": place.topic_id, "name": place.name}
        response = self.request(
            "produce",
            version,
            transactional_id=tx,
            acks=acks,
            timeout=timedelta(seconds=10),
            topic_data=[{**topic, "partition_data": partitions}],
        )
        return response.responses[0].partition_responses[0]

    def produce_result(self, place, records, version=13, **values):
        """Return the offset, or the error's name."""
        reported = self.produce(place, records, version, **values)
        return reported.error_code.name if reported.error_code else reported.base_offset

    def fetch(self, *partitions, version=17, **values):
        """Fetch partitions: each a topic, a partition, an offset, more fields."""
        topics = {}
        for place, partition, offset, *more in partitions:
            of_topic = topics.setdefault(place, [])
            of_topic.append(
                {
                    "partition": partition,
                    "fetch_offset": offset,
                    "current_leader_epoch": -1,
                    "last_fetched_epoch": -1,
                    "log_start_offset": -1,
                    "partition_max_bytes": 1 << 20,
                    **dict(more),
                }
            )
        known = {
            "replica_id": -1,
            "max_wait": timedelta(0),
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "forgotten_topics_data": [],
        }
        return self.request(
            "fetch",
            version,
            **known | values,
            topics=[
                {
                    "topic_id": place.topic_id,
                    "topic": place.name,
                    "partitions": of_topic,
                }
                for place, of_topic in topics.items()
            ],
        )

    def read(self, place, offset=0, **values):
        """Fetch from one partition; return its part of the response."""
        return self.fetch((place, 0, offset), **values).responses[0].partitions[0]

    def init(self, tx=None, timeout=60.0, producer=(-1, -1), version=5):
        response = self.request(
            "init_producer_id",
            version,
            transactional_id=tx,
            transaction_timeout=timedelta(seconds=timeout),
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        if response.error_code:
            return response.error_code.name
        return response.producer_id, response.producer_epoch

    def begin(self, timeout=60.0):
        """Return a new transactional id with its producer."""
        tx = f"tx-{uuid.uuid4().hex[:8]}"
        self.when_ready(
            lambda: self.request(
                "find_coordinator", 4, key_type=1, coordinator_keys=[tx]
            ).coordinators[0]
        )
        return tx, self.producer(tx, timeout)

    def producer(self, tx=None, timeout=60.0):
        """Return a producer's id and epoch; retry while a broker starts."""
        for _ in range(RETRIES):
            found = self.init(tx, timeout)
            if not isinstance(found, str):
                return found
            self.either.sleep(0.1)
        raise AssertionError(found)

    def end(self, tx, producer, committed=True, version=5):
        response = self.when_ready(
            lambda: self.request(
                "end_txn",
                version,
                transactional_id=tx,
                producer_id=producer[0],
                producer_epoch=producer[1],
                committed=committed,
            )
        )
        if response.error_code:
            return response.error_code.name
        return (response.producer_id, response.producer_epoch) if version >= 5 else None

    def when_ready(self, send):
        """Retry until the coordinator is ready and has written its markers."""
        for _ in range(RETRIES):
            response = send()
            if response.error_code not in BUSY:
                return response
            self.either.sleep(0.1)
        return response

    def look_up(self, place, timestamp, version=10, isolation=0, **partition):
        response = self.request(
            "list_offsets",
            version,
            replica_id=-1,
            isolation_level=isolation,
            timeout=timedelta(seconds=10),
            topics=[
                {
                    "name": place.name,
                    "partitions": [
                        {
                            "partition_index": 0,
                            "current_leader_epoch": -1,
                            "timestamp": timestamp,
                            **partition,
                        }
                    ],
                }
            ],
        )
        return response.topics[0].partitions[0]

    def delete(self, place, offset, partition=0):
        response = self.request(
            "delete_records",
            2,
            topics=[
                {
                    "name": place.name,
                    "partitions": [{"partition_index": partition, "offset": offset}],
                }
            ],
            timeout=timedelta(seconds=10),
        )
        found = response.topics[0].partitions[0]
        return found.error_code.name if found.error_code else found.low_watermark


def offsets_in(read):
    """Return the base offsets of whole batches."""
    heads, _ = batches_in(read.records)
    return [head.base_offset for head in heads]


def parts(response):
    """Return each partition of a response: index, error, whole batches."""
    return [
        (part.partition_index, part.error_code.name, offsets_in(part))
        for topic in response.responses
        for part in topic.partitions
    ]
