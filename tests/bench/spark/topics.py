"""The topics that both sources read."""

import os
import sys
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.running import finished

__all__ = ["loaded_topic"]

ANSWER: Final = 30.0  # seconds for the broker to make a topic
PATIENCE: Final = 900.0  # and for some gigabytes to be loaded


def loaded_topic(
    servers: str, guard: CleanupProcess, *, partitions: int, records: int, size: int
) -> str:
    """Make a topic with so many records, evenly over its partitions."""
    name = f"values-{size}"
    admin = AdminClient({"bootstrap.servers": servers})
    made = admin.create_topics([NewTopic(name, partitions, 1)])
    made[name].result(ANSWER)
    program = [sys.executable, "-m", "tests.bench.loading", "--bootstrap", servers]
    where = ["--topic", name, "--partitions", str(partitions)]
    what = ["--records", str(records), "--size", str(size)]
    finished([*program, *where, *what], guard, PATIENCE)
    os.sync()  # writing it out later would disturb what is measured
    return name
