"""A share group as a source of Spark's: `spark.readStream.format("sharegroup")`."""
