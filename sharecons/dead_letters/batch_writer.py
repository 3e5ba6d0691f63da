"""Writes a batch of dead letters to their targets, and completes an interrupted one."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import anyio

from sharecons._record import TopicPartition
from sharecons.admin import OffsetSpec, ShareGroupAdmin
from sharecons.copies.dead_letter_headers import RedriveMark, read_redrive_mark
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.dead_letters.plan import RedrivePlan, Write
from sharecons.dead_letters.progress import InFlight, TargetState
from sharecons.dead_letters.reader import read_records
from sharecons.errors import AuthorizationError, BrokerError, Error
from sharecons.instrumentation import Instrumentation, SendObserver
from sharecons.net.broker_pool import Deadline
from sharecons.producer.idempotent import IdempotentProducer, OutgoingRecord
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.produce.batches import SEQUENCE_LIMIT
from sharecons.protocol.produce.messages import (
    InitProducerId,
    InitProducerIdResponse,
    ProducerIdentity,
)
from sharecons.records.encoder import NewRecord

__all__ = ["BatchResult", "BatchWriter"]

IDENTITY_TIMEOUT: Final = 30.0
MAX_ATTEMPTS: Final = 10
RETRY_DELAY: Final = 1.0
"""Seconds until the targets are read again, after another batch has come first."""

_REJECTED: Final = (
    Code.MESSAGE_TOO_LARGE,
    Code.RECORD_LIST_TOO_LARGE,
    Code.INVALID_RECORD,
    Code.INVALID_TIMESTAMP,
)
"""Codes of a record that its topic does not take: the others can be written."""

_SUPERSEDED: Final = (
    Code.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Code.UNKNOWN_PRODUCER_ID,
    Code.INVALID_PRODUCER_EPOCH,
)
"""Codes of a batch whose sequence numbers another process has used."""

_UNAUTHORIZED: Final = (
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.CLUSTER_AUTHORIZATION_FAILED,
)

Sequences: TypeAlias = "Counter[TopicPartition]"


@dataclass(slots=True)
class BatchResult:
    """The result of writing a batch.

    Attributes:
        written: how many were written.
        had: how many were written before by the process that was interrupted.
        is_complete: False if a limit left some of them.
        rejected: records that their topics do not take, and why.
    """

    written: int = 0
    had: int = 0
    is_complete: bool = True
    rejected: list[tuple[Write, Error]] = field(default_factory=list)


class BatchWriter:
    """Writes batches with one producer id, and counts its sequence numbers.

    Partitions are explicit and records have one order, so that another process can
    continue a batch under the same producer id: a leader then appends the records of
    only one of the two.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        plan: RedrivePlan,
        instrumentation: Instrumentation | None = None,
    ) -> None:
        self._admin = admin
        self._observer: SendObserver | None = None
        if instrumentation is not None:
            client = self._admin._brokers.cluster.as_client()
            self._observer = instrumentation.observe_copies(client)
        self._plan = plan
        self._identity: ProducerIdentity | None = None
        self._sequences: Sequences = Counter()

    async def prepare(
        self, letters: OffsetRanges, targets: Iterable[TopicPartition]
    ) -> InFlight:
        """Return the state that must be stored before a batch is written.

        Args:
            letters: the offsets of its dead letters.
            targets: the partitions that they are written to.

        Raises:
            BrokerError: a target or a producer id cannot be looked up.
        """
        ends = await self._admin.list_offsets(tuple(targets), OffsetSpec.LATEST)
        if self._identity is None:
            self._identity = await self._request_identity()
        return InFlight(
            letters=letters,
            identity=self._identity,
            targets={
                key: TargetState(
                    one.value.offset or 0, self._sequences[key] % SEQUENCE_LIMIT
                )
                for key, one in ends.items()
            },
        )

    async def write(self, writes: Sequence[Write], in_flight: InFlight) -> BatchResult:
        """Write a batch that `prepare` was called for.

        Raises:
            Error: it might be written in part.
        """
        return await self._write(writes, in_flight.identity, self._sequences)

    async def find_written(
        self, key: TopicPartition, in_flight: InFlight
    ) -> Mapping[TopicPartition, frozenset[int]]:
        """Read the targets of an interrupted batch; return the dead letters in them.

        Args:
            key: the partition of the dead-letter topic.
        """
        described = await self._admin.describe_topics(
            *{target.topic for target in in_flight.targets}
        )
        existing = [
            target
            for target in in_flight.targets
            if (topic := described.found.get(target.topic)) is not None
            and target.partition in topic.partitions
        ]
        ends = await self._admin.list_offsets(existing, OffsetSpec.LATEST)
        return {
            target: await self._marked(
                key, target, in_flight.targets[target].end_offset, one.value.offset or 0
            )
            for target, one in ends.items()
        }

    async def _marked(
        self, key: TopicPartition, target: TopicPartition, start: int, end: int
    ) -> frozenset[int]:
        found: set[int] = set()
        async for records, *_ in read_records(self._admin, target, start, end):
            for record in records:
                match read_redrive_mark(record.headers):
                    case RedriveMark(self._plan.name, key.topic, key.partition, offset):
                        found.add(offset)
        return frozenset(found)

    async def complete(
        self,
        key: TopicPartition,
        writes: Sequence[Write],
        in_flight: InFlight,
        limit: int | None,
    ) -> BatchResult:
        """Write what an interrupted batch lacks.

        Args:
            key: the partition of the dead-letter topic.
            limit: write no more records than this.

        Raises:
            Error: it might be written in part.
        """
        attempts = 1
        while True:
            written = await self.find_written(key, in_flight)
            done: frozenset[int] = frozenset().union(*written.values())
            missing = [each for each in writes if each.letter.offset not in done]
            sequences: Sequences = Counter(
                {
                    target: state.sequence + len(written.get(target, ()))
                    for target, state in in_flight.targets.items()
                }
            )
            try:
                result = await self._write(
                    missing[:limit], in_flight.identity, sequences
                )
            except BrokerError as error:
                if error.code not in _SUPERSEDED or attempts == MAX_ATTEMPTS:
                    raise
                # The interrupted process's request came first, after the targets were
                # read. Or replicas do not have it yet, and so it cannot be read.
                attempts += 1
                await anyio.sleep(RETRY_DELAY)
            else:
                result.had = len(writes) - len(missing)
                result.is_complete = limit is None or len(missing) <= limit
                return result

    # Producing.

    async def _write(
        self, writes: Sequence[Write], identity: ProducerIdentity, sequences: Sequences
    ) -> BatchResult:
        result = await self._write_once(writes, identity, sequences)
        by_target = Counter(write.target for write, _ in result.rejected)
        again = [(w, e) for w, e in result.rejected if by_target[w.target] > 1]
        # A topic rejects a batch for one of its records.
        result.rejected = [each for each in result.rejected if each not in again]
        for write, _ in again:
            alone = await self._write_once([write], identity, sequences)
            result.written += alone.written
            result.rejected += alone.rejected
        return result

    async def _write_once(
        self, writes: Sequence[Write], identity: ProducerIdentity, sequences: Sequences
    ) -> BatchResult:
        result, failures = BatchResult(), list[Error]()
        outcomes = await self._send(writes, identity, sequences) if writes else []
        for write, outcome in zip(writes, outcomes, strict=True):
            if not isinstance(outcome, Error):
                result.written += 1
                sequences[write.target] += 1
            elif isinstance(outcome, BrokerError) and outcome.code in _REJECTED:
                result.rejected.append((write, outcome))
            else:
                failures.append(outcome)
        if failures:
            raise failures[0]
        return result

    async def _send(
        self, writes: Sequence[Write], identity: ProducerIdentity, sequences: Sequences
    ) -> Sequence[object]:
        producer = IdempotentProducer(
            self._admin._brokers,
            identity=identity,
            sequences={
                key: number % SEQUENCE_LIMIT for key, number in sequences.items()
            },
            observer=self._observer,
        )
        now = time.time_ns() // 1_000_000
        records = [
            OutgoingRecord(
                write.target.topic, self._record(write, now), write.target.partition
            )
            for write in writes
        ]
        outcomes: Sequence[object] = ()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(producer.run)
            outcomes = await producer.send_each(records)
            tasks.cancel_scope.cancel()
        return outcomes

    def _record(self, write: Write, now: int) -> NewRecord:
        letter = write.letter
        return NewRecord(
            key=letter.key,
            value=letter.value,
            headers=self._plan.headers(letter),
            timestamp=now,
        )

    async def _request_identity(self) -> ProducerIdentity:
        deadline, backoff = Deadline(IDENTITY_TIMEOUT), Backoff()
        while True:
            response: InitProducerIdResponse = await self._admin._brokers.send_to_any(
                InitProducerId(), deadline
            )
            if response.error == Code.NONE:
                return response.identity
            error, delay = _identity_error(response.error), backoff.next_delay()
            if not error.retriable or deadline.left <= delay:
                raise error
            await anyio.sleep(delay)


def _identity_error(code: int) -> BrokerError:
    name = code_name(code)
    kind = AuthorizationError if code in _UNAUTHORIZED else BrokerError
    return kind(f"no producer id: {name}", code=code, name=name)
