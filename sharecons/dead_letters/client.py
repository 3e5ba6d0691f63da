"""`DeadLetters`: read and redrive the dead letters of a topic."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Final, Self

from sharecons.admin import ShareGroupAdmin
from sharecons.config.security import Security
from sharecons.config.validation import (
    check_count,
    check_group_id,
    check_number,
    check_topic,
)
from sharecons.dead_letters.filters import LetterFilter
from sharecons.dead_letters.models import DeadLetterRecord, RedriveSummary
from sharecons.dead_letters.plan import RedrivePlan
from sharecons.dead_letters.progress_store import GROUP_PREFIX
from sharecons.dead_letters.reader import dead_letters_of, log_ranges, read_records
from sharecons.dead_letters.redrive import OnDecision, OnProgress, Redrive
from sharecons.errors import ConfigurationError

__all__ = ["DEFAULT_MAX_REDRIVES", "DeadLetters"]

DEFAULT_MAX_REDRIVES: Final = 3
MAX_RATE: Final = 1e9


class DeadLetters:
    """The dead letters of a topic, which a worker or a broker has written.

        async with DeadLetters("orders.dead") as letters:
            async for letter in letters.read():
                print(letter.origin, letter.value)
            await letters.redrive(wanted=parse_filter("reason~timeout"))

    Args:
        topic: the dead-letter topic.
        bootstrap_servers, client_id, security, timeout: as for `ShareGroupAdmin`.

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
    ) -> None:
        admin = ShareGroupAdmin(
            bootstrap_servers, client_id=client_id, security=security, timeout=timeout
        )
        self._set(admin, topic)

    @classmethod
    def of_admin(cls, admin: ShareGroupAdmin, topic: str) -> Self:
        """Return the dead letters of a topic, on the connections of an admin client."""
        letters = cls.__new__(cls)
        letters._set(admin, topic)
        return letters

    def _set(self, admin: ShareGroupAdmin, topic: str) -> None:
        self.topic = check_topic("topic", topic)
        self._admin = admin

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
        self, wanted: LetterFilter | None = None, *, fetch_sources: bool = True
    ) -> AsyncGenerator[DeadLetterRecord]:
        """Yield dead letters, by partition and offset, up to the end at the first call.

        Nothing is consumed. Records without the headers of a dead letter are yielded,
        too, with None as `origin`.

        Args:
            wanted: yield only dead letters that pass; None is all.
            fetch_sources: read the records that brokers' dead letters refer to.

        Raises:
            BrokerError: the topic does not exist or cannot be read.
        """
        ranges = await log_ranges(self._admin, self.topic)
        for key, (start, end) in ranges.items():
            slices = read_records(self._admin, key, start, end)
            async with aclosing(slices):
                async for records, _, _ in slices:
                    for letter in await dead_letters_of(
                        self._admin, records, fetch=fetch_sources
                    ):
                        if wanted is None or wanted.matches(letter):
                            yield letter

    async def get(self, partition: int, offset: int) -> DeadLetterRecord | None:
        """Return one dead letter; None if the log has no record at the offset.

        Raises:
            BrokerError: the topic or partition does not exist, or cannot be read.
        """
        ranges = await log_ranges(self._admin, self.topic)
        for key, (start, end) in ranges.items():
            if key.partition == partition and start <= offset < end:
                slices = read_records(self._admin, key, offset, offset + 1)
                async with aclosing(slices):
                    async for records, _, _ in slices:
                        for letter in await dead_letters_of(
                            self._admin, records, fetch=True
                        ):
                            return letter
        return None

    async def redrive(
        self,
        *,
        to: str | None = None,
        name: str | None = None,
        wanted: LetterFilter | None = None,
        max_redrives: int = DEFAULT_MAX_REDRIVES,
        limit: int | None = None,
        rate: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> RedriveSummary:
        """Write each dead letter back to its origin's topic, or to another one, once.

        An interrupted redrive continues where it stopped if this is called again with
        the same name, also from another machine. Dead letters that arrive meanwhile are
        left for the next run.

        Args:
            to: the topic to write to; None is the topic of each dead letter's origin.
            name: each dead letter is redriven once for a name; None makes one from the
                topics.
            wanted: redrive only dead letters that pass; None is all.
            max_redrives: skip dead letters that were redriven this often before.
            limit: redrive no more than this in this run.
            rate: how many per second; None is as fast as possible.
            on_progress: called with the summary so far, at the start and after each
                batch.

        Raises:
            ConfigurationError: an argument is invalid, or the name was used with other
                filters or another target.
            RedriveConflictError: another process redrives under this name.
            BrokerError, RequestTimedOutError, ...: the redrive is interrupted.
        """
        redrive = self._new_redrive(
            to, name, wanted, max_redrives, limit, rate, on_progress
        )
        return await redrive.run()

    async def plan_redrive(
        self,
        on_decision: OnDecision,
        *,
        to: str | None = None,
        name: str | None = None,
        wanted: LetterFilter | None = None,
        max_redrives: int = DEFAULT_MAX_REDRIVES,
        limit: int | None = None,
    ) -> RedriveSummary:
        """Call `on_decision` with what `redrive` would do now; write nothing.

        Raises as `redrive`.
        """
        redrive = self._new_redrive(to, name, wanted, max_redrives, limit, None, None)
        return await redrive.dry_run(on_decision)

    def _new_redrive(
        self,
        to: str | None,
        name: str | None,
        wanted: LetterFilter | None,
        max_redrives: int,
        limit: int | None,
        rate: float | None,
        on_progress: OnProgress | None,
    ) -> Redrive:
        check_count("max_redrives", max_redrives, 1)
        if limit is not None:
            check_count("limit", limit, 1)
        if rate is not None:
            check_number("rate", rate, 0.001, MAX_RATE)
        if to is not None and check_topic("to", to) == self.topic:
            raise ConfigurationError("to is the dead-letter topic itself")
        if name is None:
            name = self.topic if to is None else f"{self.topic}.to.{to}"
        check_group_id(f"{GROUP_PREFIX}{name}")
        plan = RedrivePlan(
            topic=self.topic,
            name=name,
            to=to,
            wanted=LetterFilter() if wanted is None else wanted,
            max_redrives=max_redrives,
        )
        return Redrive(
            self._admin, plan, limit=limit, rate=rate, on_progress=on_progress
        )
