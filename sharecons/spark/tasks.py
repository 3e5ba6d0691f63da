"""One task: the ranges of offsets that it reads, and how it reads them."""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import InputPartition

from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.options import QueryOptions, load_security

__all__ = ["RangesPartition", "options_for_tasks", "read_partition"]


class RangesPartition(InputPartition):
    """The ranges of offsets that one task reads."""

    def __init__(self, ranges: Sequence[AcquiredRange]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


def read_partition(partition: RangesPartition, options: QueryOptions) -> Iterator[Any]:
    """Yield the records of a task's ranges as Arrow record batches.

    Raises:
        DataLostError: the log no longer has some of them.
    """
    # Imported here, as the driver does not need Arrow: with pandas it takes 0.3 s.
    from sharecons.spark.arrow import SCHEMA, SCHEMA_WITH_HEADERS
    from sharecons.spark.fetching import read_ranges

    _freeze_objects()
    schema = SCHEMA_WITH_HEADERS if options.include_headers else SCHEMA
    batches: Iterator[Any] = read_ranges(
        partition.ranges,
        bootstrap_servers=options.bootstrap_servers,
        schema=schema,
        fail_on_data_loss=options.fail_on_data_loss,
        client_id=options.client_id,
        request_timeout=options.request_timeout,
        security=load_security(options.security),
    )
    return batches


def _freeze_objects() -> None:
    """Exclude all current objects, mostly modules, from garbage collection.

    Spark runs the collector after each task. Without this a run takes 15 ms of CPU,
    twice the other cost of a task.
    """
    if not gc.get_freeze_count():
        gc.freeze()


def options_for_tasks(options: QueryOptions) -> QueryOptions:
    """Return the options without the credentials of the ledger's storage.

    Tasks do not read the ledger. They connect to the brokers, so the options for TLS
    and SASL stay.
    """
    return replace(options, ledger_options={})
