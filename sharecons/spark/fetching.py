"""Reads ranges of the log by plain Fetch, as Arrow record batches.

`protocol.log_reader` decides which requests to send to which broker, a thread with an
event loop sends them, and the task's thread decodes the responses.
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

ISOLATION_LEVELS: Final = ("read_uncommitted", "read_committed")

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
    """Yield all records of the ranges, in order of offset within each partition.

    Reading the same ranges again yields the same rows, as long as the log has them. A
    range can contain offsets without a record: transaction markers and compacted
    records. Close the iterator to end it early.

    Args:
        schema: `arrow.SCHEMA`, `SCHEMA_WITH_HEADERS`, or some of their columns.
        isolation: "read_committed" leaves out records of aborted transactions. The
            default reads all, as the group's own `share.isolation.level` has already
            excluded records from the ranges.
        request_timeout: seconds for each request.
        timeout: seconds without progress after which reading a partition fails.
        security: TLS and SASL; None for plain TCP.

    Raises:
        DataLostError: the log no longer has some of the offsets. With
            `fail_on_data_loss` false this is logged, and the rest is read.
        RecordsError: a batch is damaged.
        RequestTimedOutError: brokers could not be reached, or returned no records.
        AuthorizationError: the user is not allowed to read a topic.
        AuthenticationError: either side rejected the credentials; tokens and
            certificates for 10 s.
    """
    if isolation not in ISOLATION_LEVELS:
        known = " or ".join(map(repr, ISOLATION_LEVELS))
        raise ConfigurationError(f"isolation must be {known}, not {isolation!r}")
    names = {each.topic_id: each.topic for each in ranges}
    reader = LogReader(
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
        was_accepted=True,  # the driver, which has acquired the ranges
    )
    if reader.finished:
        return iter(())
    thread = FetchThread(reader, cluster, request_timeout)
    return _read_batches(thread, names, schema, fail_on_data_loss)


def _read_batches(
    thread: FetchThread,
    names: dict[bytes, str],
    schema: Any,
    fail_on_data_loss: bool,
) -> Iterator[Any]:
    with closing(thread):
        thread.start()
        while (event := thread.next()) is not None:
            topic = names[event.share_partition.topic_id]
            if isinstance(event, LostRange):
                _report_lost(topic, event, fail_on_data_loss)
            else:
                yield from _decode(topic, event, schema)


def _decode(topic: str, fetched: FetchedSlice, schema: Any) -> Iterator[Any]:
    partition = fetched.share_partition.partition
    reader = ColumnsReader(
        fetched.records,
        fetched.spans,
        aborted=fetched.aborted,
        with_headers="headers" in schema.names,
    )
    # The memory of the response is reused when no view of it is left.
    fetched.records.release()
    try:
        while (columns := reader.read()) is not None:
            yield record_batch(columns, topic, partition, schema)
    except DamagedError as error:
        raise RecordsError(
            f"{topic}-{partition}, from offset {fetched.spans[0][0]} on: {error}; if "
            "this happens each time, the log itself is damaged at its leader"
        ) from error


def _report_lost(topic: str, lost: LostRange, fail_on_data_loss: bool) -> None:
    where = f"{topic}-{lost.share_partition.partition}"
    first, last = lost.first_offset, lost.last_offset
    if fail_on_data_loss:
        raise DataLostError(
            f"{where}, offsets {first} to {last} cannot be read any more: "
            f"{lost.reason}; set failOnDataLoss to false to continue without them"
        )
    _log.warning(
        "lost records skipped",
        partition=where,
        first_offset=first,
        last_offset=last,
        reason=lost.reason,
    )
