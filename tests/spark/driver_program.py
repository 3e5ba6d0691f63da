"""A driver program for tests that kill it: one query, until it is killed or done.

`python -m tests.spark.driver_program '{"servers": ..., "trigger": {...}}'`

It says "ready", waits for a line, and begins: so that Spark is warm by then.
"""

import json
import sys

from tests.spark.faults import FaultySource
from tests.spark.spark_session import Query, joined_with_itself, session


def main(said):
    spark = session(said.get("master", "local[2,4]"))
    spark.dataSource.register(FaultySource)
    tell("ready")
    sys.stdin.readline()
    query = Query(
        said["servers"], said["topic"], said["group"], said["base"], **said["options"]
    )
    frame = query.read(spark)
    if said.get("joined"):
        frame = joined_with_itself(frame)
    running = query.start(frame, **said["trigger"])
    tell("running")
    running.awaitTermination()
    tell("done")


def tell(what):
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
