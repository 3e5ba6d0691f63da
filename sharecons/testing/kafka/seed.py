"""Records to consume, for trying out the client."""

import subprocess

from sharecons.testing.kafka.cluster import KafkaCluster
from sharecons.testing.kafka.errors import LaunchError

__all__ = ["produce_jobs"]

ROUND_ROBIN = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"


def produce_jobs(cluster: KafkaCluster, topic: str, count: int) -> None:
    """Write `job 1`, `job 2` and so on with Kafka's own producer.

    Raises:
        LaunchError: the producer has failed; the message has its output.
    """
    lines = "".join(f"job {number}\n" for number in range(1, count + 1))
    # Round robin: without keys a producer fills one partition at a time.
    spread = ("--producer-property", "partitioner.class=" + ROUND_ROBIN)
    where = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic)
    command = cluster.java_command(PRODUCER, *where, *spread)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    if done.returncode:
        raise LaunchError(f"the records could not be written:\n{done.stderr}")
