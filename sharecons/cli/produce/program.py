"""Reads lines and writes their records."""

import time
from collections.abc import Callable
from functools import partial

import anyio
from anyio.lowlevel import checkpoint

from sharecons._record import Headers
from sharecons.cli.exit_codes import CONNECT_TIMEOUT, ExitCode
from sharecons.cli.name_hints import SIMILAR
from sharecons.cli.produce.failures import FailedLines
from sharecons.cli.produce.line_splitter import LineSplitter
from sharecons.cli.produce.new_line import LineError, NewLine
from sharecons.cli.produce.standard_input import StandardInput
from sharecons.cli.stop_signals import run_until_signal
from sharecons.config.validation import check_topic, parse_bootstrap
from sharecons.errors import AuthorizationError, BrokerError, ConfigurationError, Error
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.cluster import Cluster
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.producer.records import RecordPosition
from sharecons.properties.settings import ClientSettings
from sharecons.protocol.admin.fanout import results_of
from sharecons.protocol.codes import Code
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord
from sharecons.similar_names import did_you_mean
from sharecons.version import VERSION

__all__ = ["ProduceLines", "produce_lines"]


class ProduceLines:
    """The records to produce.

    Args:
        parse: returns the record in a line, or raises LineError.
        headers: added to each record, after its own.
    """

    def __init__(
        self,
        topic: str,
        parse: Callable[[bytes], NewLine],
        *,
        partition: int | None,
        headers: Headers,
        compression: Codec,
    ) -> None:
        self.topic = check_topic("topic", topic)
        self.parse = parse
        self.partition = partition
        self.headers = headers
        self.compression = compression


async def produce_lines(
    settings: ClientSettings, work: ProduceLines, write_error: Callable[[str], object]
) -> ExitCode:
    """Produce the lines of standard input until its end or a signal.

    Lines that were read before a signal are written.

    Raises:
        Error: no broker was reached, or the topic does not exist.
        InputError: standard input cannot be read; the lines before are written.
    """
    cluster = Cluster(
        parse_bootstrap(settings.bootstrap_servers),
        client_id=settings.client_id,
        software_version=VERSION,
        security=settings.security,
    )
    timeout = settings.timeout
    async with BrokerPool(cluster, min(CONNECT_TIMEOUT, timeout)) as brokers:
        await _check_topic_exists(brokers, work, Deadline(timeout))
        producer = IdempotentProducer(
            brokers, delivery_timeout=timeout, compression=work.compression
        )
        lines = _LineProducer(producer, work, FailedLines(write_error))
        return await lines.run(write_error)


async def _check_topic_exists(
    brokers: BrokerPool, work: ProduceLines, deadline: Deadline
) -> None:
    response = await brokers.request_topics([work.topic], deadline)
    found = results_of(response.topics, "produce to", lambda name: f"topic {name!r}")
    error = found[work.topic].error
    if isinstance(error, BrokerError) and error.code == Code.UNKNOWN_TOPIC_OR_PARTITION:
        names = (await brokers.request_topics(None, deadline)).topics
        text = f"{error}{did_you_mean(work.topic, names, cutoff=SIMILAR)}"
        raise BrokerError(text, code=error.code, name=error.name)
    partitions = len(found[work.topic].value.partitions)
    if work.partition is not None and work.partition >= partitions:
        raise ConfigurationError(
            f"topic {work.topic!r} has no partition {work.partition}: it has "
            f"{partitions}"
        )


class _LineProducer:
    """Submits the record of each line, and counts the outcomes."""

    def __init__(
        self, producer: IdempotentProducer, work: ProduceLines, failed: FailedLines
    ) -> None:
        self._producer = producer
        self._work = work
        self._failed = failed
        self._splitter = LineSplitter()
        self._read = 0  # lines
        self._unconfirmed = 0
        self._confirmed = anyio.Event()
        self._is_stopped = False  # by an error that later lines would have as well
        self._reading = anyio.CancelScope()

    async def run(self, write_error: Callable[[str], object]) -> ExitCode:
        failure: Exception | None = None
        code = ExitCode.SUCCESS
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._producer.run)
            try:
                code = await run_until_signal(self._read_lines)
            except Exception as error:  # noqa: BLE001 (raised below)
                failure = error
            await self._wait_until_confirmed()
            tasks.cancel_scope.cancel()
        if summary := self._failed.summary(self._read):
            write_error(summary)
        if failure is not None:
            raise failure
        return max(code, self._failed.exit_code)

    async def _read_lines(self) -> None:
        """Submit lines until the end, a line without a record, or a lasting error."""
        with self._reading:
            stdin = StandardInput()
            try:
                while data := await stdin.read():
                    for line in self._splitter.feed(data):
                        await self._submit(line)
                    await checkpoint()
                for line in self._splitter.finish():
                    await self._submit(line)
            except LineError as error:
                self._read += 1
                text = f"{error}; this line and later ones are not written"
                self._failed.add(self._read, LineError(text))

    async def _submit(self, line: bytes) -> None:
        new = self._work.parse(line)
        timestamp = new.timestamp
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        record = NewRecord(
            new.key, new.value, (*new.headers, *self._work.headers), timestamp
        )
        await self._producer.submit(
            self._work.topic,
            record,
            partial(self._on_outcome, self._read + 1),
            partition=self._work.partition,
        )
        # Not before: a signal can cancel the call, which then adds nothing.
        self._read += 1
        self._unconfirmed += 1

    def _on_outcome(self, line: int, outcome: RecordPosition | Error) -> None:
        self._unconfirmed -= 1
        if isinstance(outcome, Error):
            self._failed.add(line, outcome)
            if _is_lasting(outcome):
                self._reading.cancel()
        self._confirmed.set()

    async def _wait_until_confirmed(self) -> None:
        """Return when each record has an outcome; all have a deadline."""
        while self._unconfirmed:
            await self._confirmed.wait()
            self._confirmed = anyio.Event()


def _is_lasting(error: Error) -> bool:
    """Return whether later lines would have the same error."""
    if isinstance(error, BrokerError) and not isinstance(error, AuthorizationError):
        return error.code == Code.UNKNOWN_TOPIC_OR_PARTITION
    return True
