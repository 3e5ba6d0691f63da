"""Damaged batches in the log of either broker."""

from tests.kafka_plugin import EmbeddedCluster, Kafka

__all__ = ["corrupt_batch"]


def corrupt_batch(
    kafka: Kafka, topic: str, offset: int, old: bytes, new: bytes
) -> None:
    """Corrupt a batch in a partition's log, on the broker's disk if it has one."""
    if isinstance(kafka.cluster, EmbeddedCluster):
        kafka.cluster.broker.corrupt_batch(topic, 0, offset)
        return
    (node_id,) = kafka.cluster.brokers
    log = kafka.cluster.log_directory(node_id) / f"{topic}-0" / f"{0:020d}.log"
    content = log.read_bytes()
    assert old in content
    with log.open("r+b") as file:
        file.seek(content.index(old))
        file.write(new)
