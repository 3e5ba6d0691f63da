"""The outcome of each record of a batch: accepted, rejected, or a dead letter.

A query that uses `foreachBatch` names the records that it cannot process. The group has
accepted all records of a batch before Spark reads them (docs/spark-design.md), so an
outcome is no acknowledgement: a dead letter is written by the query, and a rejected
record is counted, logged and left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from re import fullmatch
from typing import Any, Final, NamedTuple

import anyio
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from sharecons.admin.client import ShareGroupAdmin
from sharecons.copies.dead_letter_headers import (
    Origin,
    chain_of,
    read_letter,
    read_redrives,
    with_first_origin,
)
from sharecons.copies.dead_letter_queue import DeadLetterQueue
from sharecons.copies.dead_letter_writer import (
    check_no_return,
    write_dead_letter,
)
from sharecons.copies.topic_configs import (
    CopyTopic,
    find_problems,
    problems_text,
    replicas_of,
)
from sharecons.errors import ConfigurationError, Error
from sharecons.guard import text_by, type_name
from sharecons.log import get_logger
from sharecons.producer.client import Producer
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.codes import Code
from sharecons.spark.options import QueryOptions, load_security, read_options

__all__ = ["BatchOutcomes", "OutcomeWriter"]
__dir__ = __all__.copy

ACCEPT: Final = "accept"
REJECT: Final = "reject"
DEAD_LETTER: Final = "dead_letter"
OUTCOMES: Final = (ACCEPT, REJECT, DEAD_LETTER)

OUTCOME: Final = "outcome"
REASON: Final = "reason"
NO_REASON: Final = "the query gave no reason"

COLUMNS: Final = (
    *("key", "value", "topic", "partition", "offset", "timestamp"),
    *("deliveryCount", "headers"),
)
"""The columns of the source that a dead letter consists of."""

CONCURRENCY: Final = 500
"""Dead letters of one task that are written at the same time, in a few requests."""

TOPIC_TIMEOUT: Final = 10.0

_log = get_logger(__name__)


class BatchOutcomes(NamedTuple):
    """The outcomes of the records of a batch.

    Attributes:
        accepted: the other records, without the columns `outcome` and `reason`.
        dead_lettered: the number of records in the dead-letter topic.
        rejected: the number of rejected records by their reason.
    """

    accepted: DataFrame
    dead_lettered: int
    rejected: Mapping[str, int]


class OutcomeWriter:
    """Applies the outcomes that a query has chosen for the records of a batch.

        outcomes = OutcomeWriter(options, dead_letter="orders.dead")

        def write(batch: DataFrame, batch_id: int) -> None:
            judged = batch.withColumn("outcome", ...).withColumn("reason", ...)
            outcomes.apply(judged).accepted.write.save(...)

    Args:
        options: the options of the source, with `includeHeaders` true: a dead letter
            has the record's headers.
        dead_letter: the topic for dead letters, which must exist.

    Raises:
        ConfigurationError: an option is invalid, or the topic for dead letters does not
            exist, loses records (compaction) or is one that the source reads.
        Error: no broker responds.
    """

    def __init__(self, options: Mapping[str, str], *, dead_letter: str) -> None:
        self._options = read_options(options)
        _check_queue(self._options, DeadLetterQueue(dead_letter))
        self._queue = DeadLetterQueue(dead_letter)

    def apply(self, batch: DataFrame) -> BatchOutcomes:
        """Write the dead letters of a batch, and return once brokers confirmed them.

        Call it before the batch is written elsewhere. If this or a later part of the
        batch fails, Spark replays the batch, and its dead letters are written again.

        Args:
            batch: the columns of the source; `outcome`, which is `accept`, `reject`,
                `dead_letter`, or null to accept; and `reason`, a string or null. Spark
                can compute both more than once, so they must depend on the record only
                (no `rand()`): a record with two results could be in no place.

        Raises:
            ConfigurationError: a column is missing, or an outcome is unknown; nothing
                was written.
            Exception: Spark's exception for a dead letter that could not be written.
        """
        _check_columns(batch)
        was_cached = batch.is_cached
        if not was_cached:
            batch.persist()
        try:
            rejected, dead_lettered = _count(batch)
            if dead_lettered:
                self._write_dead_letters(batch)
        finally:
            if not was_cached:
                batch.unpersist()
        if rejected:
            _log.warning("records rejected", **{REASON: dict(rejected)})
        is_accepted = sql.coalesce(OUTCOME, sql.lit(ACCEPT)) == ACCEPT
        accepted = batch.where(is_accepted).drop(OUTCOME, REASON)
        return BatchOutcomes(accepted, dead_lettered, rejected)

    def _write_dead_letters(self, batch: DataFrame) -> None:
        letters = batch.where(sql.col(OUTCOME) == DEAD_LETTER).select(
            *COLUMNS, sql.coalesce(REASON, sql.lit(NO_REASON)).alias(REASON)
        )
        # Rows have local times without a zone.
        letters = letters.withColumn("timestamp", sql.unix_millis("timestamp"))
        letters.foreachPartition(DeadLetterTask(self._options, self._queue))


@dataclass(frozen=True, slots=True)
class DeadLetterTask:
    """Writes the dead letters of one task; called by executors."""

    options: QueryOptions
    queue: DeadLetterQueue

    def __call__(self, rows: Iterable[Any]) -> None:
        anyio.run(self._write, iter(rows))

    async def _write(self, rows: Iterator[Any]) -> None:
        options = self.options
        async with Producer(
            bootstrap_servers=options.bootstrap_servers,
            security=load_security(options.security),
            client_id=options.client_id,
            request_timeout=options.request_timeout,
        ) as producer:
            errors: list[Error] = []
            while part := list(islice(rows, CONCURRENCY)):
                async with anyio.create_task_group() as tasks:
                    for row in part:
                        tasks.start_soon(self._try_to_write, producer, row, errors)
                if errors:
                    raise errors[0]

    async def _try_to_write(
        self, producer: Producer, row: Any, errors: list[Error]
    ) -> None:
        try:
            await self._write_one(producer, row)
        # Spark would show an exception group without its errors.
        except Error as error:
            errors.append(error)
        except Exception as error:  # noqa: BLE001 (a query can change columns)
            position = f"{row.topic}-{row.partition}@{row.offset}"
            errors.append(
                ConfigurationError(
                    f"record {position} cannot be a dead letter: {type_name(error)}: "
                    f"{text_by(str, error)}; keep the columns of the source unchanged"
                )
            )

    async def _write_one(self, producer: Producer, row: Any) -> None:
        record = _Record(
            row.topic,
            _bytes(row.key),
            _bytes(row.value),
            tuple((each.key, _bytes(each.value)) for each in row.headers or ()),
        )
        letter = read_letter(record)
        origin = Origin(
            topic=row.topic,
            partition=row.partition,
            offset=row.offset,
            group=self.options.group_id,
            delivery_count=row.deliveryCount,
            reason=row.reason,
            timestamp=row.timestamp,
            redrives=read_redrives(record.headers),
            dead_lettered=1 if letter is None else letter.dead_lettered + 1,
            earlier=None if letter is None else chain_of(letter),
        )
        origin = with_first_origin(origin, record.headers)
        check_no_return(origin, self.queue)
        await write_dead_letter(producer, self.queue, record, origin)


class _Record(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def _check_queue(options: QueryOptions, queue: DeadLetterQueue) -> None:
    if not options.include_headers:
        raise ConfigurationError(
            "includeHeaders must be true: a dead letter has the record's headers"
        )
    matches = options.topic_pattern and fullmatch(options.topic_pattern, queue.topic)
    if queue.topic in options.topics or matches:
        raise ConfigurationError(
            f"dead_letter is {queue.topic!r}, which the query reads itself; set "
            "another topic"
        )
    anyio.run(_check_topic, options, queue.topic)


async def _check_topic(options: QueryOptions, topic: str) -> None:
    async with ShareGroupAdmin(
        bootstrap_servers=options.bootstrap_servers,
        client_id=options.client_id,
        security=load_security(options.security),
        timeout=TOPIC_TIMEOUT,
    ) as admin:
        result = (await admin.describe_topics(topic))[topic]
        configs = (await admin.describe_topic_configs(topic))[topic]
    if is_code(result.error, Code.UNKNOWN_TOPIC_OR_PARTITION):
        raise ConfigurationError(
            f"the dead-letter topic {topic!r} does not exist; create it"
        )
    if result.ok and configs.ok:
        values = {name: each.value for name, each in configs.value.items()}
        known = {name: value for name, value in values.items() if value is not None}
        copy = CopyTopic(topic, False, frozenset())
        problems = find_problems(copy, known, replicas_of(result.value), ())
        found = [each for each in problems if each.is_certain]
        if found:
            servers = ",".join(map(str, options.bootstrap_servers))
            raise ConfigurationError(problems_text(copy, found, servers))


def _check_columns(batch: DataFrame) -> None:
    missing = [
        name for name in (*COLUMNS, OUTCOME, REASON) if name not in batch.columns
    ]
    if missing:
        raise ConfigurationError(
            f"the batch has no column {', '.join(missing)}; keep the columns of the "
            "source (with includeHeaders), and add outcome and reason"
        )


def _count(batch: DataFrame) -> tuple[Mapping[str, int], int]:
    """Return the rejected records by reason, and the number of dead letters."""
    rejected: Counter[str] = Counter()
    dead_lettered = 0
    is_rejected = sql.col(OUTCOME) == REJECT
    reason = sql.when(is_rejected, sql.coalesce(REASON, sql.lit(NO_REASON)))
    counts = batch.groupBy(OUTCOME, reason.alias(REASON)).count().collect()
    for outcome, text, count in counts:
        if outcome is not None and outcome not in OUTCOMES:
            raise ConfigurationError(
                f"outcome is {outcome!r}; it must be {', '.join(OUTCOMES)} or null"
            )
        if outcome == REJECT:
            rejected[text] += count
        elif outcome == DEAD_LETTER:
            dead_lettered += count
    return rejected, dead_lettered
