"""The jars of Spark's own Kafka source.

Only these four, without their dependencies, which Spark contains. All were published
for Spark 4.2, except the token provider, which works with any Spark 4.
"""

from pathlib import Path
from typing import Final

from tests.spark.maven import download_jars

__all__ = ["ARTIFACTS", "source_jars"]

ARTIFACTS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)


def source_jars() -> list[Path]:
    """Return the paths of the jars; the first call downloads them.

    Raises:
        LaunchError: neither Maven nor jgo could download them.
    """
    return download_jars("spark-source", ARTIFACTS)
