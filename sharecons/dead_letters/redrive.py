"""Redrives a dead-letter topic: each dead letter is written to its target once.

How it is exact
---------------
1. The marks are stored in the committed offsets of a group, one for each partition of
   the dead-letter topic, with ranges of offsets in its metadata: marked dead letters
   are redriven (`progress`, `progress_store`).
2. Before a batch is written, its note is stored with the marks: its dead letters, the
   producer id, and for each target partition its end and the next sequence number.
3. The batch is written. Each record names the dead letter that it comes from. Storing
   the next note, or the marks without a note, completes the batch.
4. A process that finds a note completes its batch first, whatever its own filters are.
   It reads the targets, starting at the noted ends, and looks for the batch's dead
   letters. It writes those missing under the noted producer id, with the next sequence
   numbers: if a request of the interrupted process is still on its way, the leader
   takes only one of the two, and rejects the other.
5. Dead letters of one record are redriven once. The origins of marked dead letters and
   of noted batches are read at first; a duplicate is marked after the batch of the
   other one is written.
6. Redriving a dead letter again removes its mark first, together with the claim. So an
   interrupted run continues without `again`: marked dead letters were redriven again.

Transactions would not do, even with a producer that has them: share groups read aborted
records as well, unless their group's isolation level is changed.

Of two processes with one name, the later one takes over. The earlier one notices
before its next batch, or when the leader rejects its sequence numbers, and ends. If the
other one stores a note within CLAIM_DELAY, the later one ends instead.
"""

import uuid
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Final

import anyio

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.dead_letters.batch_writer import BatchWriter
from sharecons.dead_letters.decider import Decider
from sharecons.dead_letters.models import (
    DeadLetterRecord,
    LetterOffset,
    RedriveSummary,
)
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.dead_letters.origins import Origins
from sharecons.dead_letters.plan import (
    MAX_RECORDS,
    BatchPlan,
    Decision,
    RedrivePlan,
    Skip,
    SkipReason,
    Write,
)
from sharecons.dead_letters.progress import (
    InFlight,
    Progress,
    can_mark,
    check_size,
    note_room,
)
from sharecons.dead_letters.progress_store import ProgressStore
from sharecons.dead_letters.reader import (
    CandidateSlice,
    read_candidates,
)
from sharecons.dead_letters.redrive_state import (
    RedriveState,
    load_redriven_origins,
    load_state,
)
from sharecons.dead_letters.summary_counts import SummaryCounts
from sharecons.instrumentation import Instrumentation
from sharecons.protocol.admin.models import LogBounds

__all__ = ["OnDecision", "OnProgress", "Redrive"]

CLAIM_DELAY: Final = 0.5
"""Seconds after which a process that started at the same time has stored its claim."""

OnDecision = Callable[[DeadLetterRecord, Decision], None]
OnProgress = Callable[[RedriveSummary], None]


class Redrive:
    """One run of a redrive.

    Args:
        limit: redrive no more dead letters than this.
        rate: dead letters per second; None is as fast as possible.
        on_progress: called with the summary so far, at the start and after each batch.
        instrumentation: observes what is written.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        plan: RedrivePlan,
        *,
        limit: int | None = None,
        rate: float | None = None,
        on_progress: OnProgress | None = None,
        instrumentation: Instrumentation | None = None,
    ) -> None:
        self._admin = admin
        self._plan = plan
        self._limit = limit
        self._rate = rate
        self._on_progress = on_progress
        self._run_id = uuid.uuid4().hex[:12]
        self._store = ProgressStore(admin, plan.name)
        self._writer = BatchWriter(admin, plan, instrumentation)
        self._decider = Decider(admin, plan)
        self._marks: dict[TopicPartition, OffsetRanges] = {}
        self._in_flight: dict[TopicPartition, InFlight | None] = {}
        self._seen: set[LetterOffset] = set()
        self._counts = SummaryCounts()
        self._origins = Origins()
        self._next_write = 0.0

    @property
    def summary(self) -> RedriveSummary:
        return self._counts.summary(self._plan.name)

    async def run(self) -> RedriveSummary:
        """Redrive up to the end that the topic has now.

        Raises:
            ConfigurationError: the name was used for another target, or a selected
                dead letter does not exist.
            MarksFullError: the marks do not fit in a committed offset; see there.
            RedriveConflictError: another process redrives under this name.
            Error: a broker does not respond or rejects a request; another run
                continues.
        """
        state = await self._load()
        claims = {key: self._progress(key, self._in_flight[key]) for key in state.logs}
        for key, claim in claims.items():
            check_size(key, claim, claim.marks)
        await self._store.save(claims)
        await anyio.sleep(CLAIM_DELAY)
        await self._store.check(claims)
        # Reading can take long; before the claim, the other process would go on.
        self._origins = await load_redriven_origins(self._admin, state)
        self._report()
        self._next_write = anyio.current_time()
        for key, log_range in state.ranges.items():
            if self._left != 0:
                await self._redrive(key, log_range)
        self._report_missing()
        return self.summary

    async def dry_run(self, on_decision: OnDecision) -> RedriveSummary:
        """Call `on_decision` with what `run` would do; write and store nothing.

        Raises as `run`.
        """
        state = await self._load()
        self._origins = await load_redriven_origins(self._admin, state)
        for key, log_range in state.ranges.items():
            await self._plan_in_flight(key, on_decision)
            await self._plan_partition(key, log_range, on_decision)
        self._report_missing()
        return self.summary

    async def _plan_in_flight(
        self, key: TopicPartition, on_decision: OnDecision
    ) -> None:
        in_flight = self._in_flight[key]
        if in_flight is None:
            return
        written = await self._writer.find_written(key, in_flight)
        done: frozenset[int] = frozenset().union(*written.values())
        for letter in await self._letters_of(key, in_flight):
            if letter.offset in done:
                self._counts.already_written += 1
            elif self._left != 0:
                decision = await self._decider.find_target(letter)
                self._counts.add_decision(letter, decision)
                on_decision(letter, decision)

    async def _plan_partition(
        self, key: TopicPartition, log_range: LogBounds, on_decision: OnDecision
    ) -> None:
        slices = self._slices(key, log_range)
        async with aclosing(slices):
            async for candidates, next_offset, _ in slices:
                for letter, _ in candidates:
                    if self._left == 0:
                        return
                    decision = await self._decide(key, letter)
                    self._counts.add_decision(letter, decision)
                    on_decision(letter, decision)
                    self._counts.remaining[key] = log_range.end - letter.offset - 1
                self._counts.remaining[key] = log_range.end - next_offset

    # Progress.

    async def _load(self) -> RedriveState:
        """Load the marks and notes."""
        state = await load_state(self._admin, self._plan, self._store)
        self._marks, self._in_flight = state.marks, state.in_flight
        self._counts.remaining = {
            key: max(0, end - start) for key, (start, end) in state.ranges.items()
        }
        return state

    def _progress(
        self, key: TopicPartition, in_flight: InFlight | None = None
    ) -> Progress:
        digest = self._plan.digest
        return Progress(self._marks[key], digest, self._run_id, in_flight)

    @property
    def _left(self) -> int | None:
        """How many dead letters the limit leaves; None without one."""
        if self._limit is None:
            return None
        return max(0, self._limit - self._counts.redriven)

    # One partition.

    async def _redrive(self, key: TopicPartition, log_range: LogBounds) -> None:
        in_flight = self._in_flight[key]
        if in_flight is not None and not await self._complete(key, in_flight):
            return
        batches = self._batches(key, log_range)
        async with aclosing(batches):
            async for batch in batches:
                if batch.writes:
                    await self._write(key, batch)
                self._mark_duplicates(key, batch)
                self._counts.add_skipped(batch)
                remaining = max(0, log_range.end - batch.until)
                self._counts.remaining[key] = remaining
                self._report()
        await self._store.save({key: self._progress(key)})

    async def _complete(self, key: TopicPartition, in_flight: InFlight) -> bool:
        """Complete an interrupted batch; return False if the limit ends it."""
        batch = BatchPlan(in_flight.letters.start)
        letters = await self._letters_of(key, in_flight)
        for letter in letters:
            batch.take(letter, letter.offset, await self._decider.find_target(letter))
        result = await self._writer.complete(key, batch.writes, in_flight, self._left)
        self._counts.already_written += result.had
        self._counts.add_result(result)
        if result.is_complete:
            self._counts.add_skipped(batch)
            failed = {write.letter.offset for write, _ in result.rejected}
            written = {write.letter.offset for write in batch.writes} - failed
            others = [each for each in letters if each.offset not in written]
            marks = in_flight.letters.without(each.offset for each in others)
            self._marks[key] = self._marks[key].union(marks)
            self._forget_origins(others)
        self._report()
        return result.is_complete

    async def _letters_of(
        self, key: TopicPartition, in_flight: InFlight
    ) -> list[DeadLetterRecord]:
        letters: list[DeadLetterRecord] = []
        log_range = LogBounds(in_flight.letters.start, in_flight.letters.end)
        slices = read_candidates(
            self._admin, key, log_range, in_flight.letters.__contains__
        )
        async with aclosing(slices):
            async for candidates, _, _ in slices:
                letters += (letter for letter, _ in candidates)
        self._note_seen(*letters)
        return letters

    async def _batches(
        self, key: TopicPartition, log_range: LogBounds
    ) -> AsyncGenerator[BatchPlan]:
        """Yield batches in order; the last one reaches the end, or the limit."""
        batch = self._new_batch(key, log_range.start)
        slices = self._slices(key, log_range)
        async with aclosing(slices):
            async for candidates, next_offset, errors in slices:
                self._counts.add_errors(errors)
                for letter, since in candidates:
                    decision = await self._decide(key, letter)
                    if isinstance(decision, Write) and not batch.can_take(
                        decision, since
                    ):
                        yield batch
                        if self._left == 0:
                            return
                        batch = self._new_batch(key, letter.offset)
                    batch.take(letter, since, decision)
                batch.until = next_offset
        yield batch

    def _new_batch(self, key: TopicPartition, until: int) -> BatchPlan:
        limits = [MAX_RECORDS]
        if self._left is not None:
            limits.append(self._left)
        if self._rate is not None:
            limits.append(max(1, int(self._rate)))
        return BatchPlan(until, min(limits), note_room(self._progress(key)))

    def _slices(
        self, key: TopicPartition, log_range: LogBounds
    ) -> AsyncGenerator[CandidateSlice]:
        selected = self._plan.offsets_of(key.partition)
        every, wanted = selected is None, frozenset(selected or ())
        in_flight = self._in_flight[key]
        completed = OffsetRanges() if in_flight is None else in_flight.letters

        def is_wanted(offset: int) -> bool:
            if offset in completed:
                return False
            return offset not in self._marks[key] if every else offset in wanted

        return read_candidates(self._admin, key, log_range, is_wanted)

    async def _write(self, key: TopicPartition, batch: BatchPlan) -> None:
        await anyio.sleep_until(self._next_write)
        if self._rate is not None:
            pause = len(batch.writes) / self._rate
            self._next_write = anyio.current_time() + pause
        marks = self._marks[key]
        in_flight = await self._writer.prepare(batch.marks(), batch.targets)
        progress = self._progress(key, in_flight)
        check_size(key, progress, marks.union(batch.marks()))
        await self._store.save({key: progress})
        result = await self._writer.write(batch.writes, in_flight)
        rejected = [write.letter for write, _ in result.rejected]
        self._marks[key] = marks.union(batch.marks([each.offset for each in rejected]))
        self._forget_origins(rejected)
        self._counts.add_result(result)

    def _mark_duplicates(self, key: TopicPartition, batch: BatchPlan) -> None:
        """Mark the duplicates of a batch whose other dead letters were written.

        Duplicates that do not fit, or whose other dead letter was rejected, are left to
        the next run.
        """
        duplicates = OffsetRanges.of(
            (since, letter.offset + 1)
            for since, letter in batch.duplicates
            if self._origins.find(letter.origin) is not None
        )
        marks = self._marks[key].union(duplicates)
        if can_mark(self._marks[key], marks):
            self._marks[key] = marks

    # Decisions.

    async def _decide(self, key: TopicPartition, letter: DeadLetterRecord) -> Decision:
        self._note_seen(letter)
        if letter.offset in self._marks[key]:
            return Skip(SkipReason.REDRIVEN, "--again, again=True: redrive it again")
        twin = self._origins.find(letter.origin)
        decision = await self._decider.decide(letter, twin)
        if isinstance(decision, Write):
            self._origins.add(letter.origin, letter.letter_offset)
        return decision

    def _forget_origins(self, letters: Iterable[DeadLetterRecord]) -> None:
        for letter in letters:
            self._origins.discard(letter.origin, letter.letter_offset)

    # The summary.

    def _note_seen(self, *letters: DeadLetterRecord) -> None:
        if self._plan.only is not None:
            self._seen.update(
                LetterOffset(each.partition, each.offset) for each in letters
            )

    def _report_missing(self) -> None:
        """Add an error for each selected offset without a record."""
        if self._left != 0:
            self._counts.add_errors(
                f"{self._plan.topic}-{each.partition} has no dead letter at offset "
                f"{each.offset}"
                for each in sorted((self._plan.only or frozenset()) - self._seen)
            )

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.summary)
