"""An async client for Kafka share groups (KIP-932): a topic as a queue.

async with ShareConsumer("orders", group_id="billing") as consumer:
    async for record in consumer:
        await charge(record.value)
"""

from sharecons.batch import Batch
from sharecons.build import COMPILED
from sharecons.consumer import ShareConsumer
from sharecons.errors import Error
from sharecons.protocol.acknowledgements import AcknowledgeError, AcknowledgeResult
from sharecons.record import AcknowledgeType, Record, TimestampType, TopicPartition

__all__ = [
    "COMPILED",
    "AcknowledgeError",
    "AcknowledgeResult",
    "AcknowledgeType",
    "Batch",
    "Error",
    "Record",
    "ShareConsumer",
    "TimestampType",
    "TopicPartition",
]
