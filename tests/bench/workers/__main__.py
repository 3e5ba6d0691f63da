"""Run each client in turn, for several rounds; print the figures and their ratios.

Needs `pip install 'faststream[kafka]' taskiq-aio-kafka` beside the extra `bench`.
"""

import argparse
import json
import logging
import statistics
import sys
from typing import Any, Final

from sharecons.testing.kafka import KafkaCluster
from tests.bench.workers.programs import TASK
from tests.bench.workers.running import produce, run_child, spread
from tests.kafka_plugin import Admin

log = logging.getLogger(__name__)

NO_OP: Final = ("handlers that do nothing, 100 at a time", 100, 0.0)
SLOW: Final = ("handlers of 100 ms, 500 at a time", 500, 0.1)
RUNS: Final = (
    ("sharecons", NO_OP),
    ("faststream", NO_OP),
    ("taskiq", NO_OP),
    ("sharecons", SLOW),
)


def main() -> None:
    options = _arguments()
    logging.basicConfig(level=logging.INFO)
    results: dict[tuple[str, str], list[dict[str, float]]] = {}
    with KafkaCluster(options.version) as cluster:
        bootstrap = str(cluster.bootstrap_servers)
        topics = _load(bootstrap, options.records)
        for number in range(options.rounds):
            for client, (workload, concurrency, seconds) in RUNS:
                figures = run_child(
                    "programs",
                    client,
                    bootstrap=bootstrap,
                    topic=topics[client],
                    records=options.records,
                    concurrency=concurrency,
                    handler_seconds=seconds,
                )
                results.setdefault((workload, client), []).append(figures)
                log.info("round %s, %s, %s: %s", number, client, workload, figures)
    sys.stdout.write(f"\n{_table(results)}\n")


def _load(bootstrap: str, records: int) -> dict[str, str]:
    """Create a topic of one partition for each client; return their names."""
    admin = Admin(bootstrap)
    plain, tasks = admin.create_topic(partitions=1), admin.create_topic(partitions=1)
    produce(bootstrap, plain, [b"%0100d" % number for number in range(records)])
    produce(bootstrap, tasks, [_task(number) for number in range(records)])
    return {"sharecons": plain, "faststream": plain, "taskiq": tasks}


def _task(number: int) -> bytes:
    """Return a message of taskiq's default formatter."""
    message = {
        "task_id": f"{number:032x}",
        "task_name": TASK,
        "labels": {},
        "labels_types": {},
        "args": [],
        "kwargs": {},
    }
    return json.dumps(message).encode()


def _table(results: dict[tuple[str, str], list[dict[str, float]]]) -> str:
    lines = [
        "| workload | client | records/s | CPU per record, us |",
        "|---|---|---|---|",
    ]
    for (workload, client), rounds in results.items():
        rates = [each["records_per_second"] for each in rounds]
        cpu = statistics.median(each["cpu_us_per_record"] for each in rounds)
        shown = spread(rates, "{:,.0f}".format)
        lines.append(f"| {workload} | {client} | {shown} | {cpu:.0f} |")
    return "\n".join(lines)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=5)
    add("--records", type=int, default=30_000)
    add("--version", default="4.3.0", help="of Kafka")
    return parser.parse_args()


if __name__ == "__main__":
    main()
