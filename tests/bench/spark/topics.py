"""Topics for both sources."""

import os
import sys
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.processes import run_program

__all__ = ["loaded_topic"]

RESPONSE_TIMEOUT: Final = 30.0  # seconds to create a topic
TIMEOUT: Final = 900.0  # seconds to load some gigabytes


def loaded_topic(
    servers: str, cleanup: CleanupProcess, *, partitions: int, records: int, size: int
) -> str:
    """Create a topic with records spread evenly over its partitions."""
    name = f"values-{size}"
    admin = AdminClient({"bootstrap.servers": servers})
    created = admin.create_topics([NewTopic(name, partitions, 1)])
    created[name].result(RESPONSE_TIMEOUT)
    program = [sys.executable, "-m", "tests.bench.load_topic", "--bootstrap", servers]
    where = ["--topic", name, "--partitions", str(partitions)]
    what = ["--records", str(records), "--size", str(size)]
    run_program([*program, *where, *what], cleanup, TIMEOUT)
    os.sync()  # a later write-back would disturb the measurement
    return name
