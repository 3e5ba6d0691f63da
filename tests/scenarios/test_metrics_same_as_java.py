"""The totals of a consumer's metrics, compared with those of Kafka's own client."""

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

pytestmark = [pytest.mark.anyio, pytest.mark.kafka, pytest.mark.slow]

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
    """Read all records with Kafka's performance tool; return its metrics."""
    lines = JavaTools(kafka.bootstrap_servers).run(
        "kafka-share-consumer-perf-test",
        *("--topic", topic),
        *("--group", group),
        *("--num-records", str(RECORDS)),
        *("--timeout", "30000"),
        "--print-metrics",
    )
    found = filter(None, map(_LINE.fullmatch, lines))
    return {each["name"]: float(each["value"].replace(",", "")) for each in found}


async def java_totals_of_all(kafka: Kafka, topic: str) -> dict[str, float]:
    """Return the metrics of a run that counted all records.

    Kafka's client counts a response when all of its partitions are taken. The tool may
    end before it counts the last response, whose records it has acknowledged.
    """
    for run in range(5):
        group = f"java-{run}-{topic}"
        kafka.admin.set_group_config(group, {"share.auto.offset.reset": "earliest"})
        totals = await to_thread.run_sync(java_totals, kafka, topic, group)
        assert RECORDS == totals["acknowledgements-send-total"]
        if totals["records-consumed-total"] == RECORDS:
            return totals
    raise AssertionError(f"the tool never counted {RECORDS} records: {totals}")


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
    java = await java_totals_of_all(real_kafka, queue.topic)
    own = await own_totals(queue)

    expected = {name: java[JAVA_NAMES[name]] for name in JAVA_NAMES}
    assert expected == {name: own[name] for name in JAVA_NAMES}
    assert RECORDS == own["records-fetched-total"]
    assert RECORDS * 1700 < own["bytes-fetched-total"]
