"""A share group as a stream of Spark's, on the console; needs sharecons[spark]."""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

from sharecons.spark import ShareGroupDataSource

# Workers run this Python.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def main() -> None:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(ShareGroupDataSource)

    with tempfile.TemporaryDirectory() as place:
        orders = (
            spark.readStream.format("sharegroup")
            .option(
                "kafka.bootstrap.servers",
                os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
            )
            .option("subscribe", "orders")
            .option("kafka.share.group.id", "spark-billing")
            .option("kafka.share.auto.offset.reset", "earliest")
            # Both would be kept, of course, were this more than an example.
            .option("ledgerLocation", f"{place}/ledger")
            .load()
            .selectExpr("cast(value as string) as job", "partition", "offset")
        )
        query = (
            orders.writeStream.format("console")
            .option("checkpointLocation", f"{place}/checkpoint")
            .option("numRows", 100)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
