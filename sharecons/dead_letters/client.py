"""`DeadLetters`: read and redrive the dead letters of a topic."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Final, Self

from sharecons._record import TopicPartition
from sharecons.admin import Results, ShareGroupAdmin
from sharecons.config.not_given import NOT_GIVEN, NotGiven
from sharecons.config.security import Security
from sharecons.config.validation import (
    check_count,
    check_group_id,
    check_number,
    check_topic,
)
from sharecons.dead_letters.deletion import (
    check_redriven,
    delete_letters,
    plan_deletion,
)
from sharecons.dead_letters.filters import LetterFilter
from sharecons.dead_letters.marks import load_marks
from sharecons.dead_letters.models import (
    DeadLetterRecord,
    Deletion,
    LetterOffset,
    RedriveSummary,
)
from sharecons.dead_letters.origins import Origins
from sharecons.dead_letters.plan import RedrivePlan
from sharecons.dead_letters.progress_store import GROUP_PREFIX
from sharecons.dead_letters.reader import (
    dead_letters_of,
    log_ranges,
    range_of,
    read_records,
)
from sharecons.dead_letters.redrive import OnDecision, OnProgress, Redrive
from sharecons.errors import ConfigurationError
from sharecons.instrumentation import Instrumentation, choose_instrumentation

__all__ = ["DEFAULT_MAX_REDRIVES", "DeadLetters"]

DEFAULT_MAX_REDRIVES: Final = 3
MAX_RATE: Final = 1e9


class DeadLetters:
    """The dead letters of a topic, which a worker or a broker has written.

        async with DeadLetters("orders.dead") as letters:
            async for letter in letters.read():
                print(letter.origin, letter.value)
            await letters.redrive(filter=parse_filter("reason~timeout"))

    Args:
        topic: the dead-letter topic.
        bootstrap_servers, client_id, security, timeout: as for `ShareGroupAdmin`.
        instrumentation: observes redrives, as for `Producer`.

    Raises:
        ConfigurationError: an argument is invalid.
    """

    def __init__(
        self,
        topic: str,
        *,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        client_id: str = "sharecons",
        security: Security | None = None,
        timeout: float = 30.0,
        instrumentation: Instrumentation | None | NotGiven = NOT_GIVEN,
    ) -> None:
        admin = ShareGroupAdmin(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            security=security,
            timeout=timeout,
        )
        self._set(admin, topic, instrumentation)

    @classmethod
    def from_admin(
        cls,
        admin: ShareGroupAdmin,
        topic: str,
        *,
        instrumentation: Instrumentation | None | NotGiven = NOT_GIVEN,
    ) -> Self:
        """Return the dead letters of a topic, on the connections of an admin client."""
        letters = cls.__new__(cls)
        letters._set(admin, topic, instrumentation)
        return letters

    def _set(
        self,
        admin: ShareGroupAdmin,
        topic: str,
        instrumentation: Instrumentation | None | NotGiven,
    ) -> None:
        self.topic = check_topic("topic", topic)
        self._admin = admin
        self._instrumentation = choose_instrumentation(instrumentation)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._admin.aclose()

    async def read(
        self,
        filter: LetterFilter | None = None,
        *,
        redriven: bool | None = None,
        fetch_sources: bool = True,
    ) -> AsyncGenerator[DeadLetterRecord]:
        """Yield dead letters, by partition and offset, up to the end at the first call.

        Nothing is consumed. Records without the headers of a dead letter are yielded,
        too, with None as `origin`. `redriven_by` has the names of the redrives that
        have redriven a dead letter when this is called. It lacks a batch that is being
        written or was interrupted, and the redrives whose groups the principal must
        not DESCRIBE. `duplicate_of` is the first dead letter of the same record.

        Args:
            filter: yield only dead letters that pass; None is all.
            redriven: yield only dead letters that a redrive of any name has redriven
                (True), or that none has (False); None is all.
            fetch_sources: read the records that brokers' dead letters refer to.

        Raises:
            BrokerError: the topic does not exist or cannot be read, or the groups of
                redrives cannot be read.
        """
        ranges = await log_ranges(self._admin, self.topic)
        marks, origins = await load_marks(self._admin, ranges), Origins()
        for key, (start, end) in ranges.items():
            slices = read_records(self._admin, key, start, end)
            async with aclosing(slices):
                async for records, *_ in slices:
                    for found in await dead_letters_of(
                        self._admin, records, fetch=fetch_sources
                    ):
                        letter = origins.add_to(marks.add_to(found))
                        if redriven not in (None, bool(letter.redriven_by)):
                            continue
                        if filter is None or filter.matches(letter):
                            yield letter

    async def get(self, partition: int, offset: int) -> DeadLetterRecord | None:
        """Return one dead letter; None if the log has no record at the offset.

        Others are not read, so `duplicate_of` is None.

        Raises:
            ConfigurationError: the topic has no such partition.
            BrokerError: the topic does not exist, or the partition cannot be read.
        """
        key = TopicPartition(self.topic, partition)
        start, end = range_of(await log_ranges(self._admin, self.topic), key)
        if not start <= offset < end:
            return None
        marks = await load_marks(self._admin, [key])
        slices = read_records(self._admin, key, offset, offset + 1)
        async with aclosing(slices):
            async for records, *_ in slices:
                for letter in await dead_letters_of(self._admin, records, fetch=True):
                    return marks.add_to(letter)
        return None

    async def redrive(
        self,
        *,
        to: str | None = None,
        name: str | None = None,
        filter: LetterFilter | None = None,
        only: Iterable[tuple[int, int]] | None = None,
        again: bool = False,
        max_redrives: int = DEFAULT_MAX_REDRIVES,
        limit: int | None = None,
        rate: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> RedriveSummary:
        """Write each dead letter back to its origin's topic, or to another one, once.

        Dead letters that were redriven are marked in the committed offsets of a group,
        so each is redriven once for a name, whatever filters the runs have. After a
        crash or a cancellation, call this again with the same name, on any machine: it
        completes the batch that was interrupted, and continues with what is not
        marked. Without `again`, nothing is written twice. Dead letters that arrive
        meanwhile are left for the next run.

        Dead letters with one origin (topic, partition, offset) are redriven once,
        within a run and with what was redriven before, as long as the log has the dead
        letter that was redriven; the others are marked. The marked dead letters are
        read at the start, without their sources.

        Args:
            to: the topic to write to; None is the topic of each dead letter's origin.
            name: each dead letter is redriven once for a name; None makes one from the
                topics.
            filter: redrive only dead letters that pass; None is all.
            only: redrive only the dead letters with these partitions and offsets. One
                that was redriven before is an error in the summary.
            again: redrive the dead letters in `only` even if they were redriven before.
                Their marks are removed first. After a crash, call this without `again`:
                it redrives the dead letters that are not marked yet.
            max_redrives: skip dead letters that were redriven this often before.
            limit: redrive no more than this in this run.
            rate: how many per second; None is as fast as possible.
            on_progress: called with the summary so far, at the start and after each
                batch.

        Raises:
            ConfigurationError: an argument is invalid, an offset of `only` is not in
                the log, or the name was used with another target.
            MarksFullError: the marks do not fit in a committed offset. The batch was
                not written; earlier batches are written and marked.
            RedriveConflictError: another process redrives under this name.
            BrokerError, RequestTimedOutError, ...: the redrive is interrupted.
        """
        plan = self._new_plan(to, name, filter, only, again, max_redrives)
        redrive = self._new_redrive(plan, limit, rate, on_progress)
        return await redrive.run()

    async def plan_redrive(
        self,
        on_decision: OnDecision,
        *,
        to: str | None = None,
        name: str | None = None,
        filter: LetterFilter | None = None,
        only: Iterable[tuple[int, int]] | None = None,
        again: bool = False,
        max_redrives: int = DEFAULT_MAX_REDRIVES,
        limit: int | None = None,
    ) -> RedriveSummary:
        """Call `on_decision` with what `redrive` would do now; write nothing.

        Raises as `redrive`.
        """
        plan = self._new_plan(to, name, filter, only, again, max_redrives)
        redrive = self._new_redrive(plan, limit, None, None)
        return await redrive.dry_run(on_decision)

    async def delete(
        self, before: Mapping[int, int], *, not_redriven: bool = False
    ) -> Results[int, Deletion]:
        """Delete the dead letters before an offset of each partition.

        Offsets count as redriven if a redrive of any name has marked them when this is
        called; a batch that was interrupted is not marked. Deleting again up to the
        same offset changes nothing, so after a crash, a timeout or a cancellation, call
        this again: each partition has been deleted up to its offset, or not at all.
        Marks and later redrives are not affected. But a dead letter after the offset
        whose record was redriven with a deleted one is no longer recognized as a
        duplicate, unless a redrive has skipped and marked it.

        Args:
            before: the first offset that stays, by partition.
            not_redriven: delete dead letters even if they were not redriven.

        Returns:
            The deleted range, or the error, by partition. For example, brokers reject a
            topic without cleanup.policy=delete with POLICY_VIOLATION.

        Raises:
            NotRedrivenError: dead letters that would be deleted were not redriven;
                nothing was deleted.
            ConfigurationError: a partition does not exist, or its log ends before its
                offset; nothing was deleted.
            BrokerError, RequestTimedOutError, ...: the topic or the marks cannot be
                read; nothing was deleted.
        """
        planned = await self.plan_delete(before)
        if not not_redriven:
            check_redriven(planned)
        return await delete_letters(self._admin, planned)

    async def plan_delete(self, before: Mapping[int, int]) -> Mapping[int, Deletion]:
        """Return what `delete` would delete, by partition; delete nothing.

        Reads the dead letters before the offsets, and all that were redriven.

        Args:
            before: the first offset that stays, by partition.

        Raises as `delete`, except NotRedrivenError.
        """
        offsets = dict(map(_letter_offset, before.items()))
        return await plan_deletion(self._admin, self.topic, offsets)

    def _new_plan(
        self,
        to: str | None,
        name: str | None,
        filter: LetterFilter | None,
        only: Iterable[tuple[int, int]] | None,
        again: bool,
        max_redrives: int,
    ) -> RedrivePlan:
        check_count("max_redrives", max_redrives, 1)
        if to is not None and check_topic("to", to) == self.topic:
            raise ConfigurationError("to is the dead-letter topic itself")
        if again and only is None:
            raise ConfigurationError("again needs only: the dead letters to redrive")
        if name is None:
            name = self.topic if to is None else f"{self.topic}.to.{to}"
        check_group_id(f"{GROUP_PREFIX}{name}")
        return RedrivePlan(
            topic=self.topic,
            name=name,
            to=to,
            filter=LetterFilter() if filter is None else filter,
            max_redrives=max_redrives,
            only=None if only is None else frozenset(map(_letter_offset, only)),
            again=again,
        )

    def _new_redrive(
        self,
        plan: RedrivePlan,
        limit: int | None,
        rate: float | None,
        on_progress: OnProgress | None,
    ) -> Redrive:
        if limit is not None:
            check_count("limit", limit, 1)
        if rate is not None:
            check_number("rate", rate, 0.001, MAX_RATE)
        return Redrive(
            self._admin,
            plan,
            limit=limit,
            rate=rate,
            on_progress=on_progress,
            instrumentation=self._instrumentation,
        )


def _letter_offset(each: tuple[int, int]) -> LetterOffset:
    partition, offset = each
    for name, number in (("partition", partition), ("offset", offset)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            text = f"{name} {number!r} is not a whole number from 0"
            raise ConfigurationError(text)
    return LetterOffset(partition, offset)
