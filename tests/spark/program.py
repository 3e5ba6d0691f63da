"""A driver program for tests that kill it: one query, until it is killed or done.

`python -m tests.spark.program '{"servers": ..., "trigger": {...}}'`
"""

import json
import sys

from tests.spark.sparks import Query, session


def main(said):
    spark = session(said.get("master", "local[2,4]"))
    query = Query(
        said["servers"], said["topic"], said["group"], said["base"], **said["options"]
    )
    running = query.start(query.read(spark), **said["trigger"])
    sys.stdout.write("running\n")
    sys.stdout.flush()
    running.awaitTermination()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
