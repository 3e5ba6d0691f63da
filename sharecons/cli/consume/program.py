"""Consumes records, writes them, and acknowledges the written ones."""

import math
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, Literal

import anyio
from anyio.lowlevel import checkpoint

from sharecons._record import Record
from sharecons.cli import output
from sharecons.cli.consume.deserializers import DeserializeError
from sharecons.cli.consume.standard_output import StandardOutput
from sharecons.cli.exit_codes import CONNECT_TIMEOUT, ExitCode
from sharecons.cli.output import OutputError
from sharecons.cli.stop_signals import run_until_signal
from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import (
    CorruptRecordsError,
    RecordStateError,
    UnsupportedVersionError,
)
from sharecons.properties.settings import ClientSettings

__all__ = ["ConsumeOptions", "UnwritableRecordError", "consume"]

POLL_RECORDS: Final = 500
MAX_FETCHED: Final = 2000
Consumer = ShareConsumer[bytes, bytes]


@dataclass(frozen=True, kw_only=True)
class ConsumeOptions:
    """Settings of the command.

    Attributes:
        action: the acknowledgement of a record that was written.
        max_records: how many to consume; math.inf for no limit.
        silence: seconds without a record after which the command ends.
        reject_on_error: reject a record that cannot be formatted, and go on.
    """

    topics: tuple[str, ...]
    group_id: str
    action: Literal["accept", "release", "reject"] = "accept"
    max_records: float = math.inf
    silence: float = math.inf
    reject_on_error: bool = False
    auto_offset_reset: str | None = None
    client_id: str | None = None
    member_id: str | None = None


class UnwritableRecordError(Exception):
    """A record cannot be formatted; it is released."""


async def consume(
    settings: ClientSettings,
    options: ConsumeOptions,
    format_record: Callable[[Record], bytes],
    write_error: Callable[[str], object],
) -> ExitCode:
    """Write records until a limit or a signal.

    Raises:
        Error: the consumer cannot start or go on.
        OutputError: a record cannot be written.
        UnwritableRecordError: a record cannot be formatted.
    """
    # Records that are written and not yet acknowledged are released when it closes.
    async with AsyncExitStack() as stack:
        consumer = await _open(stack, settings, options)
        printer = _Printer(consumer, options, format_record, write_error)
        try:
            return await run_until_signal(printer.run)
        except OutputError:
            printer.is_quiet = True  # there is one error line, or none for a pipe
            raise
        finally:
            await stack.aclose()
            printer.report()


async def _open(
    stack: AsyncExitStack, settings: ClientSettings, options: ConsumeOptions
) -> Consumer:
    """Start a consumer that closes with the stack.

    With a limit, it has an exact limit per fetch: records that are acquired and not
    consumed each use up a delivery. Otherwise a few runs with a small limit would use
    up all deliveries of a producer's batch.
    """
    limit = options.max_records
    consumer = _new_consumer(settings, options, exact=limit < math.inf)
    try:
        return await stack.enter_async_context(consumer)
    except UnsupportedVersionError:
        if limit == math.inf:
            raise
    # Kafka 4.1 has no exact limit. It releases records without a delivery.
    return await stack.enter_async_context(
        _new_consumer(settings, options, exact=False)
    )


def _new_consumer(
    settings: ClientSettings, options: ConsumeOptions, *, exact: bool
) -> Consumer:
    return ShareConsumer(
        *options.topics,
        group_id=options.group_id,
        bootstrap_servers=settings.bootstrap_servers,
        acknowledgement="explicit",
        auto_offset_reset=options.auto_offset_reset,
        max_records=_max_fetched(options.max_records),
        acquire_mode="record_limit" if exact else "batch_optimized",
        client_id=options.client_id or settings.client_id,
        member_id=options.member_id,
        security=settings.security,
        connect_timeout=min(CONNECT_TIMEOUT, settings.timeout),
        request_timeout=settings.timeout,
    )


def _max_fetched(limit: float) -> int:
    """Return how many records to fetch in one request.

    When the last one is consumed, two fetches can be ahead. A quarter of the limit
    leaves these records to the next run, as its first ones.
    """
    return int(max(1, min(limit // 4, MAX_FETCHED)))


class _Printer:
    """Writes and acknowledges records."""

    def __init__(
        self,
        consumer: Consumer,
        options: ConsumeOptions,
        format_record: Callable[[Record], bytes],
        write_error: Callable[[str], object],
    ) -> None:
        self.is_quiet = False
        self._consumer = consumer
        self._options = options
        self._format = format_record
        self._write_error = write_error
        self._stdout = StandardOutput()
        self._count = 0

    async def run(self) -> None:
        """Return at the limit of records, or after the silence."""
        silent_at = anyio.current_time() + self._options.silence
        while (left := self._options.max_records - self._count) > 0:
            wait = silent_at - anyio.current_time()
            records = await self._poll(max(0.0, wait), int(min(left, POLL_RECORDS)))
            for record in records:
                await self._process(record)
            if records:
                silent_at = anyio.current_time() + self._options.silence
            elif anyio.current_time() >= silent_at:
                return
            # Heartbeats need the loop as well, if records are always there.
            await checkpoint()

    async def _poll(self, timeout: float, count: int) -> list[Record]:
        try:
            return list(await self._consumer.poll(timeout=timeout, max_records=count))
        except CorruptRecordsError as error:
            if not self._options.reject_on_error:
                raise
            self._write_error(str(error))
            return []

    async def _process(self, record: Record) -> None:
        if not record.held:
            return  # its lock is lost: it is delivered again
        try:
            line = self._format(record)
        except DeserializeError as error:
            self._on_unwritable(record, error)
            return
        await self._stdout.write(line)
        self._count += 1
        self._acknowledge(record, self._options.action)

    def _on_unwritable(self, record: Record, error: DeserializeError) -> None:
        place = f"{record.topic}-{record.partition}@{record.offset}"
        if not self._options.reject_on_error:
            raise UnwritableRecordError(f"{place}: {error}; the record is released")
        self._write_error(f"{place}: {error}; the record is rejected")
        self._count += 1
        self._acknowledge(record, "reject")

    def _acknowledge(self, record: Record, action: str) -> None:
        try:
            getattr(record, action)()
        except RecordStateError as error:
            place = f"{record.topic}-{record.partition}@{record.offset}"
            self._write_error(
                f"{place} is written, but can be delivered again: {error}"
            )

    def report(self) -> None:
        """Write the summary, as Kafka's tool has it.

        The consumer itself warns of acknowledgements that failed.
        """
        if not self.is_quiet:
            output.write_error(f"Processed a total of {self._count} messages")
