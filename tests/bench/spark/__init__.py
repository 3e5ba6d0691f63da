"""Benchmark of the share-group source against Spark's own Kafka source.

`python -m tests.bench.spark --help`, from the repository's root.
"""
