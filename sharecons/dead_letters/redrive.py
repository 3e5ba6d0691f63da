"""Redrives a dead-letter topic: each dead letter is written to its target once.

How it is exact
---------------
1. The progress is stored in the committed offsets of a group, one for each partition of
   the dead-letter topic: offsets below it are done (`progress_store`).
2. Before a batch is written, its note is stored with the progress: where it ends, the
   producer id, and for each target partition its end and the next sequence number.
3. The batch is written. Each record names the dead letter that it comes from. Storing
   the next note, or the end, completes the batch.
4. A process that finds a note reads the targets, starting at the noted ends, and looks
for
   the batch's dead letters. It writes those missing under the noted producer id, with
   the next sequence numbers: if a request of the interrupted process is still on its
   way, the leader takes only one of the two, and rejects the other.

Transactions would not do, even with a producer that has them: share groups read aborted
records as well, unless their group's isolation level is changed.

Two processes with one name: the one that starts later takes over. The other one notices
before its next batch, or when the leader rejects its sequence numbers, and ends. If the
other one stores a note within CLAIM_DELAY, the later one ends instead.
"""

import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

import anyio

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.dead_letters.batch_writer import BatchResult, BatchWriter
from sharecons.dead_letters.models import (
    DeadLetterRecord,
    RedriveSummary,
)
from sharecons.dead_letters.plan import (
    MAX_RECORDS,
    BatchPlan,
    Decision,
    RedrivePlan,
    SkipReason,
    Write,
    error_of,
)
from sharecons.dead_letters.progress import InFlight, Progress
from sharecons.dead_letters.progress_store import ProgressStore
from sharecons.dead_letters.reader import (
    LogRange,
    dead_letters_of,
    is_topic,
    log_ranges,
    read_records,
)
from sharecons.errors import BrokerError, ConfigurationError
from sharecons.protocol.codes import Code

__all__ = ["OnDecision", "OnProgress", "Redrive"]

CLAIM_DELAY: Final = 0.5
"""Seconds after which a process that started at the same time has stored its claim."""

NO_TOPIC: Final = (
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.UNKNOWN_TOPIC_ID,
    Code.INVALID_TOPIC_EXCEPTION,
)

MAX_ERRORS: Final = 1_000
"""Errors of single dead letters that a summary has."""

OnDecision = Callable[[DeadLetterRecord, Decision], None]
OnProgress = Callable[[RedriveSummary], None]
Slice = tuple[Sequence[DeadLetterRecord], int]


class Redrive:
    """One run of a redrive.

    Args:
        limit: redrive no more dead letters than this.
        rate: dead letters per second; None is as fast as possible.
        on_progress: called with the summary so far, at the start and after each batch.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        plan: RedrivePlan,
        *,
        limit: int | None = None,
        rate: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._admin = admin
        self._plan = plan
        self._limit = limit
        self._rate = rate
        self._on_progress = on_progress
        self._run_id = uuid.uuid4().hex[:12]
        self._store = ProgressStore(admin, plan.name)
        self._writer = BatchWriter(admin, plan)
        self._partitions: dict[str, int] = {}
        self._redriven = self._already_written = 0
        self._skipped: Counter[SkipReason] = Counter()
        self._errors: list[str] = []
        self._remaining: dict[TopicPartition, int] = {}
        self._next_write = 0.0

    @property
    def summary(self) -> RedriveSummary:
        return RedriveSummary(
            name=self._plan.name,
            redriven=self._redriven,
            already_written=self._already_written,
            filtered=self._skipped[SkipReason.FILTERED],
            skipped={
                reason.value: count
                for reason, count in self._skipped.items()
                if count and reason is not SkipReason.FILTERED
            },
            errors=tuple(self._errors),
            remaining=sum(self._remaining.values()),
        )

    async def run(self) -> RedriveSummary:
        """Redrive up to the end that the topic has now.

        Raises:
            ConfigurationError: the name was used for another plan.
            RedriveConflictError: another process redrives under this name.
            Error: a broker does not respond or rejects a request; another run
                continues.
        """
        ends, progress = await self._load()
        claims = {
            key: self._progress(each.offset, each.in_flight)
            for key, each in progress.items()
        }
        await self._store.save(claims)
        await anyio.sleep(CLAIM_DELAY)
        await self._store.check(claims)
        self._report()
        self._next_write = anyio.current_time()
        for key, end in ends.items():
            if self._left != 0:
                await self._redrive(key, end, progress[key])
        return self.summary

    async def dry_run(self, on_decision: OnDecision) -> RedriveSummary:
        """Call `on_decision` with what `run` would do; write and store nothing.

        Raises as `run`.
        """
        ends, progress = await self._load()
        for key, end in ends.items():
            await self._plan_partition(key, end, progress[key], on_decision)
        return self.summary

    async def _plan_partition(
        self, key: TopicPartition, end: int, at: Progress, on_decision: OnDecision
    ) -> None:
        written = await self._written(key, at.in_flight)
        slices = self._slices(key, at.offset, end)
        async with aclosing(slices):
            async for letters, next_offset in slices:
                for letter in letters:
                    if self._left == 0:
                        return
                    if letter.offset in written:
                        self._already_written += 1
                    else:
                        on_decision(letter, await self._count_planned(letter))
                    self._remaining[key] = end - letter.offset - 1
                self._remaining[key] = end - next_offset

    async def _written(
        self, key: TopicPartition, in_flight: InFlight | None
    ) -> frozenset[int]:
        if in_flight is None:
            return frozenset()
        found = await self._writer.find_written(key, in_flight)
        return frozenset().union(*found.values())

    async def _count_planned(self, letter: DeadLetterRecord) -> Decision:
        decision = await self._decide(letter)
        if isinstance(decision, Write):
            self._redriven += 1
        else:
            self._skipped[decision.reason] += 1
            self._add_errors(error_of(letter, decision))
        return decision

    # Progress.

    async def _load(
        self,
    ) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, Progress]]:
        """Return where each partition ends, and the progress to start with."""
        ranges = await log_ranges(self._admin, self._plan.topic)
        stored = await self._store.load(ranges)
        progress = {
            key: self._start(key, log_range, stored[key])
            for key, log_range in ranges.items()
        }
        ends = {key: log_range.end for key, log_range in ranges.items()}
        self._remaining = {
            key: max(0, end - progress[key].offset) for key, end in ends.items()
        }
        return ends, progress

    def _start(
        self, key: TopicPartition, log_range: LogRange, stored: Progress | None
    ) -> Progress:
        if stored is None:
            return self._progress(log_range.start)
        if stored.plan != self._plan.digest:
            raise ConfigurationError(
                f"redrive {self._plan.name!r} was started with other filters or "
                "another target: use the same ones to continue it, or another name"
            )
        if stored.offset > log_range.end:
            raise ConfigurationError(
                f"redrive {self._plan.name!r} has reached offset {stored.offset} of "
                f"{key.topic}-{key.partition}, which now ends at {log_range.end}: the "
                "topic is a new one; use another name"
            )
        return stored

    def _progress(self, offset: int, in_flight: InFlight | None = None) -> Progress:
        return Progress(offset, self._plan.digest, self._run_id, in_flight)

    @property
    def _left(self) -> int | None:
        """How many dead letters the limit leaves; None without one."""
        return None if self._limit is None else max(0, self._limit - self._redriven)

    # One partition.

    async def _redrive(self, key: TopicPartition, end: int, progress: Progress) -> None:
        at = progress.offset
        if progress.in_flight is not None:
            if not await self._complete(key, at, progress.in_flight):
                return
            at = progress.in_flight.until
        batches = self._batches(key, at, end)
        async with aclosing(batches):
            async for batch in batches:
                if batch.writes:
                    await self._write(key, batch)
                self._count_skipped(batch)
                at = batch.until
                self._remaining[key] = max(0, end - at)
                self._report()
        await self._store.save({key: self._progress(at)})

    async def _complete(
        self, key: TopicPartition, start: int, in_flight: InFlight
    ) -> bool:
        """Complete an interrupted batch; return False if the limit ends it."""
        batch = BatchPlan(start)
        slices = self._slices(key, start, in_flight.until)
        async with aclosing(slices):
            async for letters, _ in slices:
                for letter in letters:
                    batch.take(letter, await self._decide(letter))
        result = await self._writer.complete(key, batch.writes, in_flight, self._left)
        self._already_written += result.had
        self._count(result)
        if result.is_complete:
            self._count_skipped(batch)
        self._report()
        return result.is_complete

    async def _batches(
        self, key: TopicPartition, start: int, end: int
    ) -> AsyncGenerator[BatchPlan]:
        """Yield consecutive batches; the last one reaches `end`, or the limit."""
        batch = self._new_batch(start)
        slices = self._slices(key, start, end)
        async with aclosing(slices):
            async for letters, next_offset in slices:
                for letter in letters:
                    decision = await self._decide(letter)
                    if isinstance(decision, Write) and not batch.can_take(decision):
                        yield batch
                        if self._left == 0:
                            return
                        batch = self._new_batch(letter.offset)
                    batch.take(letter, decision)
                batch.until = next_offset
        yield batch

    def _new_batch(self, start: int) -> BatchPlan:
        limits = [MAX_RECORDS]
        if self._left is not None:
            limits.append(self._left)
        if self._rate is not None:
            limits.append(max(1, int(self._rate)))
        return BatchPlan(start, min(limits))

    async def _slices(
        self, key: TopicPartition, start: int, end: int
    ) -> AsyncGenerator[Slice]:
        found = read_records(self._admin, key, start, end)
        async with aclosing(found):
            async for records, next_offset, damaged in found:
                self._add_errors(*damaged)
                letters = await dead_letters_of(self._admin, records, fetch=True)
                yield letters, next_offset

    async def _write(self, key: TopicPartition, batch: BatchPlan) -> None:
        await anyio.sleep_until(self._next_write)
        if self._rate is not None:
            pause = len(batch.writes) / self._rate
            self._next_write = anyio.current_time() + pause
        in_flight = await self._writer.prepare(batch.until, batch.targets)
        await self._store.save({key: self._progress(batch.start, in_flight)})
        self._count(await self._writer.write(batch.writes, in_flight))

    # Decisions.

    async def _decide(self, letter: DeadLetterRecord) -> Decision:
        topic = self._plan.target_topic(letter)
        if topic is not None and topic not in self._partitions:
            self._partitions[topic] = await self._partition_count(topic)
        decision = self._plan.decide(letter, self._partitions)
        if isinstance(decision, Write) and letter.error is not None:
            raise letter.error
        return decision

    async def _partition_count(self, topic: str) -> int:
        if not is_topic(topic):
            return 0
        described = (await self._admin.describe_topics(topic))[topic]
        error = described.error
        if isinstance(error, BrokerError) and error.code in NO_TOPIC:
            return 0
        return len(described.value.partitions)

    # The summary.

    def _count(self, result: BatchResult) -> None:
        self._redriven += result.written
        self._skipped[SkipReason.REJECTED] += len(result.rejected)
        self._add_errors(
            *(f"{write.letter.position}: {error}" for write, error in result.rejected)
        )

    def _count_skipped(self, batch: BatchPlan) -> None:
        self._skipped += batch.skipped
        self._add_errors(*batch.errors)

    def _add_errors(self, *errors: str) -> None:
        self._errors += (each for each in errors if each)
        del self._errors[MAX_ERRORS:]

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.summary)
