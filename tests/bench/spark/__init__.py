"""Spark reads one topic by the share group's source and by its own Kafka source.

`python -m tests.bench.spark --help`, from the repository's root.
"""
