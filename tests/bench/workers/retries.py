"""Throughput beside failed records: `python -m tests.bench.workers.retries`.

100 handlers of 50 ms process one partition at up to 2,000 records/s. In every second
run, 1,000 records request a retry after 30 s: they move to a retry topic. The other
records' rates of the two runs are compared, in the same period of each.
"""

import argparse
import asyncio
import json
import logging
import sys
import time
import uuid
from typing import Any, Final

from sharecons import Retry, RetryPolicy, RetryTopic, ShareWorker
from sharecons.testing.kafka import KafkaCluster
from tests.bench.workers.running import produce, run_child, spread
from tests.kafka_plugin import Admin

RECORDS: Final = 60_000
FAILING: Final = 1_000
FAILS_EACH: Final = 10
"""After the warm-up, each tenth record fails until FAILING have."""

WARM_UP: Final = 3_000
MEASURED: Final = 35_000
"""Records after the warm-up whose rate is measured, without failing records."""

log = logging.getLogger(__name__)


def fails(number: int) -> bool:
    """Return whether a record fails in the runs with failures."""
    number -= WARM_UP
    return 0 <= number < FAILING * FAILS_EACH and number % FAILS_EACH == 0


async def measure(options: argparse.Namespace) -> None:
    """Run a worker; print the rate of the records that do not fail."""
    done, start = 0, 0.0
    finished = asyncio.Event()

    async def handle(record: Any) -> None:
        nonlocal done, start
        await asyncio.sleep(0.05)
        if record.topic != options.topic:
            return
        if fails(record.offset):
            if options.failing:
                raise Retry(after=30.0)
            return
        done += 1
        if done == WARM_UP:
            start = time.perf_counter()
        if done == WARM_UP + MEASURED:
            seconds = time.perf_counter() - start
            figures = {
                "records_per_second": MEASURED / seconds,
                **worker.stats._asdict(),
            }
            sys.stdout.write(f"{json.dumps(figures)}\n")
            finished.set()

    worker = ShareWorker(
        options.topic,
        handle,
        group_id=f"retries-{uuid.uuid4()}",
        bootstrap_servers=options.bootstrap,
        auto_offset_reset="earliest",
        concurrency=100,
        retry=RetryPolicy(maximum=30.0),
        retry_topics=[RetryTopic(options.retry_topic, 30.0)],
    )
    running = asyncio.ensure_future(worker.run())
    await finished.wait()
    worker.stop_now()
    await running


def compare(options: argparse.Namespace) -> None:
    """Run both in turn; print each ratio and the middle one."""
    ratios = []
    with KafkaCluster(options.version) as cluster:
        bootstrap = str(cluster.bootstrap_servers)
        admin = Admin(bootstrap)
        topic = admin.create_topic(partitions=1)
        produce(bootstrap, topic, [b"%0100d" % number for number in range(RECORDS)])
        for number in range(options.rounds):
            rates = []
            for failing in (False, True):
                figures = run_child(
                    "retries",
                    *(["--failing"] if failing else []),
                    bootstrap=bootstrap,
                    topic=topic,
                    retry_topic=admin.create_topic(partitions=1),
                )
                log.info("round %s, failing %s: %s", number, failing, figures)
                rates.append(figures["records_per_second"])
            ratios.append(rates[1] / rates[0])
    shown = spread(ratios, "{:.3f}".format)
    sys.stdout.write(f"with failures / without: {shown}, {len(ratios)} rounds\n")


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--version", default="4.3.0", help="of Kafka")
    child = parser.add_argument_group("of one run, started by the others")
    child.add_argument("--bootstrap")
    child.add_argument("--topic")
    child.add_argument("--retry-topic")
    child.add_argument("--failing", action="store_true")
    options = parser.parse_args()
    if options.bootstrap:
        asyncio.run(measure(options))
    else:
        compare(options)


if __name__ == "__main__":
    main()
