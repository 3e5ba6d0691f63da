"""The membership of a worker: starts and closes its member, and takes its records."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final

import anyio

from sharecons.config import validation
from sharecons.errors import ClosedError, ConsumerStateError, Error
from sharecons.instrumentation import SendObserver
from sharecons.member.group_configs import GroupConfigReader
from sharecons.member.group_setup import OffsetReset
from sharecons.member.group_start import CheckBeforeJoining
from sharecons.member.lease_buffer import LeaseBuffer
from sharecons.member.record_taker import RecordTaker
from sharecons.member.settings import MemberSettings
from sharecons.member.share_member import SHORT_SETTLE_TIMEOUT, ShareMember
from sharecons.net.cluster import Cluster
from sharecons.protocol.fetch.demand import FetchDemand
from sharecons.record import ACCEPT, RELEASE, AcknowledgeType, TopicPartition

__all__ = ["WorkerMembership"]

RESPONSE_MARGIN: Final = 0.05
"""Seconds after the `max_wait` of a fetch for its response, when the worker stops."""

CONFIRM_TIMEOUT: Final = 5.0
"""Half of the time for which a record runs alone."""

ADVICE: Final = (
    "raise share.record.lock.duration.ms, and do not block the event loop, in which "
    "the worker renews locks"
)
"""Advice if a handler takes longer than the lock of its record."""


class WorkerMembership:
    """The member of a worker.

    It sets the group's offset reset to earliest, unless the application or the group
    has a value.

    Args:
        settings: how it connects, joins its group and fetches.
        topics: the topics of the subscription.

    Attributes:
        group_id: the share group.
        request_timeout: seconds to wait for one response.
        max_records: the records of one round of fetches.
        sets_earliest: the member sets the group's offset reset unless it has one.
        cluster: opens connections with the settings.
        member: the member.
        copy_observer: observes the copies that the worker writes, if anything does.
        on_locks_lost: set this; it is called with the reason when locks of records can
            be lost. It returns whether it logs such records.

    Raises:
        ConfigurationError: a topic's name is invalid, or occurs twice.
    """

    def __init__(
        self,
        settings: MemberSettings,
        topics: Iterable[str],
    ) -> None:
        member = ShareMember(settings, validation.check_topics(topics))
        member.owner = "worker"
        self.group_id: str = member.group_id
        self.request_timeout: float = settings.request_timeout
        self.max_records: int = settings.fetch.max_records
        self.cluster: Cluster = settings.cluster
        self.sets_earliest: bool = settings.offset_reset.is_default
        if self.sets_earliest:
            earliest = OffsetReset("earliest", is_default=True)
            member.settings = replace(settings, offset_reset=earliest)
        self.copy_observer: SendObserver | None = None
        if settings.instrumentation is not None:
            client = settings.cluster.as_client(member.group_id)
            self.copy_observer = settings.instrumentation.observe_copies(client)
        self.on_locks_lost: Callable[[str], bool] = _ignore
        member.new_listener = self._new_taker
        self.member = member
        self._starting: anyio.CancelScope | None = None
        self._start_or_end: anyio.Event | None = None
        self._ended: anyio.Event | None = None
        self._has_ended = False

    def set_topics(self, topics: Iterable[str]) -> None:
        """Replace the subscription, before the member starts."""
        self.member.topics = validation.check_topics(topics)

    def set_member_id(self, name: str) -> None:
        """Set the member id, before the member starts.

        Raises:
            ConfigurationError: the name is empty or not a str.
            ConsumerStateError: the member has started.
        """
        if self.member.state != "new":
            raise ConsumerStateError(
                "the member id cannot be changed: the worker has started"
            )
        self.member.settings = self.member.settings.with_member_id(name)

    def _new_taker(self, buffer: LeaseBuffer) -> RecordTaker:
        self._taker = RecordTaker(buffer, lambda reason: self.on_locks_lost(reason))
        return self._taker

    # The run.

    def check_before_joining(self, check: CheckBeforeJoining) -> None:
        """Let the member await `check` once it has connected, before it joins.

        An exception ends the start.
        """
        self.member.check_before_joining = check

    @asynccontextmanager
    async def running(self) -> AsyncIterator[bool]:
        """Start the member, and close it at the end; yield whether it has started.

        It has not if `cancel_start` was called.

        Raises:
            Error: the member cannot start, or one of its tasks has failed.
        """
        member = self.member
        with anyio.CancelScope() as self._starting:
            await member.start()
        if member.state != "open":
            yield False
            return
        self._end_waits()
        member.result_log.advice = ADVICE
        member.result_log.is_guarded = True
        member.result_log.reports_lost = False
        try:
            yield True
        except anyio.get_cancelled_exc_class():
            self.shorten_close()
            raise
        finally:
            await member.close_soon()
        member.raise_unreported_crash()

    async def wait_until_assigned(self) -> frozenset[TopicPartition]:
        """Wait until the member is started and has partitions.

        Raises:
            ClosedError: the worker has ended.
            Others as `ShareMember.assigned`.
        """
        while self.member.state in ("new", "starting") and not self._has_ended:
            if self._start_or_end is None:
                self._start_or_end = anyio.Event()
            await self._start_or_end.wait()
        if self._has_ended:
            raise ClosedError("the worker has ended; create another ShareWorker")
        return await self.member.assigned()

    def on_ended(self) -> None:
        """End calls that wait for the start: the worker has ended."""
        self._has_ended = True
        self._end_waits()
        if self._ended is not None:
            self._ended.set()

    async def wait_until_ended(self) -> None:
        """Wait until `on_ended` was called."""
        if not self._has_ended:
            # Not in the constructor, which can be called outside of an event loop.
            self._ended = self._ended or anyio.Event()
            await self._ended.wait()

    def _end_waits(self) -> None:
        if self._start_or_end is not None:
            self._start_or_end.set()
            self._start_or_end = None

    def cancel_start(self) -> None:
        """Cancel the start of the member, if it has not started yet."""
        if self._starting is not None:
            self._starting.cancel()

    def shorten_close(self) -> None:
        """Close within a second, even if brokers do not respond."""
        self.member.shorten_close()

    @property
    def settling_deadline(self) -> float:
        """When the member leaves the group, even if leaders do not respond."""
        return self.member.settling_deadline

    async def drain(self, on_fetched: Callable[[], None] = lambda: None) -> None:
        """Fetch no more; wait until all records are settled and acknowledged.

        Records that are already acquired can still be taken meanwhile, including the
        records of paused topics. Once none is held, brokers have `response_timeout`
        to respond. `on_fetched` is called once no fetch is in flight.
        """
        if self.member.paused:
            self.member.buffer.set_paused(frozenset())
            self._taker.on_ready()
        await self.member.drain(self.response_timeout, on_fetched)

    @property
    def response_timeout(self) -> float:
        """Seconds for the response to a fetch, when the worker stops."""
        max_wait = self.member.settings.fetch.max_wait
        return max(SHORT_SETTLE_TIMEOUT, max_wait + RESPONSE_MARGIN)

    def set_paused(self, topics: frozenset[str]) -> None:
        """Take no records of these topics; take the records of all others again."""
        self.member.set_paused(topics)
        self._taker.on_ready()

    # Its records.

    async def take(self, max_records: int, *, timeout: float) -> list[Any]:
        """Take records; as `RecordTaker.take`."""
        return await self._taker.take(max_records, timeout=timeout)

    def acknowledge(self, record: Any, kind: AcknowledgeType) -> None:
        """Acknowledge a record. Its own methods raise, since handlers can call them.

        Raises:
            LockLostError, RecordStateError, ClosedError: as `Record.accept`.
        """
        result_log = self.member.result_log
        result_log.is_guarded = False
        try:
            if kind is ACCEPT:
                record.accept()
            elif kind is RELEASE:
                record.release()
            else:
                record.reject()
        finally:
            result_log.is_guarded = True

    async def confirm_acknowledgements(self) -> None:
        """Wait until brokers have applied what was acknowledged before.

        Brokers have up to CONFIRM_TIMEOUT seconds; failures are reported as always.
        """
        with suppress(Error):
            await self.member.commit(CONFIRM_TIMEOUT)

    @property
    def has_failed(self) -> bool:
        """True if an error has ended the member."""
        return self.member.buffer.has_failed

    @property
    def fatal_error(self) -> Error | None:
        """The error that has ended the member, or None."""
        try:
            self.member.buffer.raise_fatal_error()
        except Error as error:
            return error
        return None

    @property
    def buffered(self) -> int:
        """How many records the member has acquired that were not taken."""
        return self.member.buffer.count

    @property
    def demand(self) -> FetchDemand:
        """How many records are fetched."""
        return self.member.demand

    def leave_out(self, topics: frozenset[str]) -> None:
        """Leave topics out of the next fetches; others are fetched.

        Records of these topics that were fetched before can be taken.
        """
        self.member.leave_out(topics)

    @property
    def configs(self) -> GroupConfigReader:
        """The configs of the group."""
        return self.member.configs


def _ignore(reason: str) -> bool:
    """Do nothing, before the worker has records."""
    return False
