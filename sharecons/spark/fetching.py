"""What a task reads: ranges of the log, by plain Fetch, as Arrow's record batches.

`protocol.reading` says what to ask whom; a thread with an event loop asks it, while the
task's own thread decodes what came before. Two answers wait at most.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from sharecons.config.security import Security
from sharecons.config.validation import parse_bootstrap
from sharecons.errors import ConfigurationError, RecordsError
from sharecons.log import get_logger
from sharecons.net.cluster import Cluster
from sharecons.net.io.transport import Network
from sharecons.protocol.log_reader.cursor import spans_by_partition
from sharecons.protocol.log_reader.reader import FetchedSlice, LogReader, LostRange
from sharecons.records.columns_reader import ColumnsReader
from sharecons.records.errors import DamagedError
from sharecons.spark.arrow import SCHEMA, record_batch
from sharecons.spark.errors import DataLostError
from sharecons.spark.fetch_thread import FetchThread
from sharecons.spark.ledger import AcquiredRange
from sharecons.version import VERSION

__all__ = ["read_ranges"]

ISOLATIONS: Final = ("read_uncommitted", "read_committed")

TIMEOUT: Final = 120.0  # Spark's kafkaConsumer.pollTimeoutMs

_log = get_logger(__name__)


def read_ranges(
    ranges: Sequence[AcquiredRange],
    *,
    bootstrap_servers: str | Sequence[str],
    schema: Any = SCHEMA,
    isolation: str = "read_uncommitted",
    fail_on_data_loss: bool = True,
    client_id: str = "sharecons-spark",
    request_timeout: float = 30.0,
    timeout: float = TIMEOUT,
    security: Security | None = None,
    network: Network | None = None,
) -> Iterator[Any]:
    """Read all records of the ranges, ascending within each partition.

    Reading the same ranges again gives the same rows, as long as the log has them. A
    range may hold offsets without a record: markers of transactions, and what
    compaction removed. Close the iterator to end it early.

    Args:
        schema: `arrow.SCHEMA`, `SCHEMA_WITH_HEADERS`, or some of their columns.
        isolation: a group gives only what its own `share.isolation.level` admits, so
            that all of it may be read; "read_committed" leaves out what was aborted.
        timeout: seconds after which a partition that brings nothing is given up.
        security: TLS and SASL; None for plain TCP.

    Raises:
        DataLostError: the log no longer has some of it; with `fail_on_data_loss` false
            that is a warning, and the rest is read.
        RecordsError: a batch is damaged.
        RequestTimedOutError: brokers could not be reached, or brought nothing.
        AuthorizationError: a topic may not be read.
        AuthenticationError: the brokers do not let us in.
    """
    if isolation not in ISOLATIONS:
        known = " or ".join(map(repr, ISOLATIONS))
        raise ConfigurationError(f"isolation must be {known}, not {isolation!r}")
    names = {each.topic_id: each.topic for each in ranges}
    reading = LogReader(
        spans_by_partition(ranges),
        names,
        committed=isolation == "read_committed",
        timeout=timeout,
    )
    cluster = Cluster(
        parse_bootstrap(bootstrap_servers),
        network,
        client_id=client_id,
        software_version=VERSION,
        security=security,
    )
    if reading.finished:
        return iter(())
    background = FetchThread(reading, cluster, request_timeout)
    return _batches(background, names, schema, fail_on_data_loss)


def _batches(
    background: FetchThread,
    names: dict[bytes, str],
    schema: Any,
    fail_on_data_loss: bool,
) -> Iterator[Any]:
    with closing(background):
        background.start()
        while (happened := background.next()) is not None:
            topic = names[happened.share_partition.topic_id]
            if isinstance(happened, LostRange):
                _lost(topic, happened, fail_on_data_loss)
            else:
                yield from _decoded(topic, happened, schema)


def _decoded(topic: str, piece: FetchedSlice, schema: Any) -> Iterator[Any]:
    partition = piece.share_partition.partition
    reader = ColumnsReader(
        piece.records,
        piece.spans,
        aborted=piece.aborted,
        with_headers="headers" in schema.names,
    )
    # The answer's memory is used again, once nobody has a view of it.
    piece.records.release()
    try:
        while (columns := reader.read()) is not None:
            yield record_batch(columns, topic, partition, schema)
    except DamagedError as error:
        raise RecordsError(
            f"{topic}-{partition}, offsets {piece.spans[0][0]} on: {error}; if it is "
            "so each time, the log itself is damaged at its leader"
        ) from error


def _lost(topic: str, lost: LostRange, fail_on_data_loss: bool) -> None:
    where = f"{topic}-{lost.share_partition.partition}"
    first, last = lost.first_offset, lost.last_offset
    if fail_on_data_loss:
        raise DataLostError(
            f"{where}, offsets {first} to {last} cannot be read any more: "
            f"{lost.reason}; "
            "set failOnDataLoss to false to go on without them"
        )
    _log.warning(
        "records lost and passed over",
        partition=where,
        first_offset=first,
        last_offset=last,
        why=lost.reason,
    )
