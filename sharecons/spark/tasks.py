"""What one task reads: a few ranges of offsets, by plain Fetch."""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import InputPartition

from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.options import SourceOptions, security_of

__all__ = ["RangesPartition", "for_tasks", "read_partition"]


class RangesPartition(InputPartition):
    """Ranges of offsets, for one task."""

    def __init__(self, ranges: Sequence[AcquiredRange]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


def read_partition(partition: RangesPartition, options: SourceOptions) -> Iterator[Any]:
    """Read what a task is to read, as Arrow's record batches.

    Raises:
        DataLostError: the log does not have it any more.
    """
    # Here, since the driver needs none of it: Arrow takes 0.3 s where pandas is.
    from sharecons.spark.arrow import SCHEMA, SCHEMA_WITH_HEADERS
    from sharecons.spark.fetching import read_ranges

    _spare_collector()
    schema = SCHEMA_WITH_HEADERS if options.include_headers else SCHEMA
    batches: Iterator[Any] = read_ranges(
        partition.ranges,
        bootstrap_servers=options.bootstrap_servers,
        schema=schema,
        fail_on_data_loss=options.fail_on_data_loss,
        client_id=options.client_id,
        request_timeout=options.request_timeout,
        security=security_of(options.security),
    )
    return batches


def _spare_collector() -> None:
    """Have the collector leave alone what is there now: modules, for the most part.

    Spark collects after each task, and looked at all of it each time: 15 ms of CPU,
    twice what else a task costs here.
    """
    if not gc.get_freeze_count():
        gc.freeze()


def for_tasks(options: SourceOptions) -> SourceOptions:
    """The options without the keys to the ledger's store: tasks do not go there.

    They go to the brokers, so that what is said of TLS and SASL stays.
    """
    return replace(options, ledger_options={})
