"""A share group as a stream of Spark's, on the console; needs sharecons[spark].

    python examples/spark_stream.py
    spark-submit --master spark://master:7077 examples/spark_stream.py

Without spark-submit it runs on this machine. docs/spark-running.md shows how the
executors of a cluster get sharecons.
"""

import os
import sys
import tempfile

from pyspark.sql import SparkSession


def start_session() -> SparkSession:
    builder = SparkSession.builder.appName("billing")
    # spark-submit sets this variable, the master, and the Python of workers.
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master("local[2]")
    return builder.getOrCreate()


def main() -> None:
    spark = start_session()
    spark.sparkContext.setLogLevel("ERROR")

    with tempfile.TemporaryDirectory() as directory:
        orders = (
            spark.readStream.format("sharegroup")
            .option(
                "kafka.bootstrap.servers",
                os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
            )
            .option("subscribe", "orders")
            .option("kafka.share.group.id", "spark-billing")
            .option("kafka.share.auto.offset.reset", "earliest")
            # A real program keeps the ledger and the checkpoint.
            .option("ledgerLocation", f"{directory}/ledger")
            .load()
            .selectExpr("cast(value as string) as job", "partition", "offset")
        )
        query = (
            orders.writeStream.format("console")
            .option("checkpointLocation", f"{directory}/checkpoint")
            .option("numRows", 100)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
