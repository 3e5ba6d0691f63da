"""A driver program for tests that kill it: one query, until it is killed or ends.

`python -m tests.spark.driver_program '{"servers": ..., "trigger": {...}}'`

It prints "ready" when Spark has started, waits for a line, and starts the query.
"""

import json
import sys

from tests.spark.faults import FaultySource
from tests.spark.spark_session import Query, self_join, session


def main(config):
    spark = session(config.get("master", "local[2,4]"))
    spark.dataSource.register(FaultySource)
    report("ready")
    sys.stdin.readline()
    query = Query(
        config["servers"],
        config["topic"],
        config["group"],
        config["base"],
        **config["options"],
    )
    frame = query.read(spark)
    if config.get("joined"):
        frame = self_join(frame)
    running = query.start(frame, **config["trigger"])
    report("running")
    running.awaitTermination()
    report("done")


def report(state):
    sys.stdout.write(f"{state}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
