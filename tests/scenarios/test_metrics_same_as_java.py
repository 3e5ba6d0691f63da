"""The totals of a consumer's metrics equal the totals of Kafka's own client."""

import re
from collections.abc import Mapping
from typing import Final

import anyio
import pytest
from anyio import to_thread

from sharecons.metrics import MetricName
from tests.broker.java_tools import JavaTools
from tests.kafka_plugin import Kafka
from tests.scenarios.queue import Queue
from tests.scenarios.versions import since_4_2

pytestmark = [
    pytest.mark.anyio,
    since_4_2,
    pytest.mark.kafka,
    pytest.mark.slow("starts a JVM"),
]

RECORDS: Final = 3000
JAVA_NAMES: Final[dict[MetricName, str]] = {
    "records-fetched-total": "records-consumed-total",
    "bytes-fetched-total": "bytes-consumed-total",
    "acknowledgements-send-total": "acknowledgements-send-total",
    "acknowledgements-error-total": "acknowledgements-error-total",
    "rebalance-total": "rebalance-total",
}
_LINE: Final = re.compile(
    r"\s*[a-z-]+:(?P<name>[a-z-]+-total):\{.*\}\s*: (?P<value>\S+)"
)


def java_totals(kafka: Kafka, topic: str, group: str) -> dict[str, float]:
    """Read all records with Kafka's performance tool; return its metrics.

    Kafka's client counts a response once a poll finds no more records in it. A poll
    that the last record fills does not check this, so no poll must be full.
    """
    lines = JavaTools(kafka.bootstrap_servers).run(
        "kafka-share-consumer-perf-test",
        *("--topic", topic),
        *("--group", group),
        *("--num-records", str(RECORDS)),
        *("--command-property", f"max.poll.records={2 * RECORDS}"),
        *("--timeout", "30000"),
        "--print-metrics",
    )
    found = filter(None, map(_LINE.fullmatch, lines))
    return {each["name"]: float(each["value"].replace(",", "")) for each in found}


async def own_totals(queue: Queue) -> Mapping[MetricName, float]:
    """Read all records with a consumer that accepts them; return its metrics."""
    with anyio.fail_after(60):
        async with queue.consumer(acknowledgement="explicit") as consumer:
            count = 0
            async for batch in consumer.batches():
                batch.accept()
                count += len(batch)
                if count == RECORDS:
                    break
            await consumer.commit()
            return consumer.metrics()


async def test_totals_are_those_of_the_java_client(real_kafka: Kafka) -> None:
    """Two groups read the same records: of several sizes, compressed and not."""
    queue = Queue(real_kafka.admin, partitions=2)
    for codec in ("none", "lz4"):
        for size in (0, 100, 5000):
            queue.produce([b"x" * size] * (RECORDS // 6), compression=codec)
    group = f"java-{queue.topic}"
    queue.admin.set_group_config(group, {"share.auto.offset.reset": "earliest"})
    java = await to_thread.run_sync(java_totals, real_kafka, queue.topic, group)
    own = await own_totals(queue)

    assert RECORDS == java["records-consumed-total"]
    expected = {name: java[JAVA_NAMES[name]] for name in JAVA_NAMES}
    assert expected == {name: own[name] for name in JAVA_NAMES}
    assert RECORDS == own["records-fetched-total"]
    assert RECORDS * 1700 < own["bytes-fetched-total"]
