"""A member of a share group as a source of records."""

from collections.abc import Callable
from typing import Any, Final

from sharecons.errors import ConsumerStateError, Error
from sharecons.member.lease_buffer import LeaseBuffer
from sharecons.member.record_source import SHORT_SETTLE_TIMEOUT
from sharecons.member.record_taker import RecordTaker
from sharecons.member.share_member import ShareMember
from sharecons.member.source_options import SourceOptions
from sharecons.net.io.event_loop import FOREVER
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.record import ACCEPT, RELEASE, AcknowledgeType

__all__ = ["ShareSource"]

RESPONSE_MARGIN: Final = 0.05
"""Seconds after the `max_wait` of a fetch for its response, when the source drains."""


class ShareSource(ShareMember):
    """The member below worker, taskiq and Spark; one task takes its records."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options, self._new_taker)

    def _new_taker(self, buffer: LeaseBuffer) -> RecordTaker:
        options = self._options
        self._taker = RecordTaker(buffer, options.on_locks_lost, options.on_changed)
        return self._taker

    @property
    def member_id(self) -> str:
        """The member id, as sent to the group coordinator."""
        return self.settings.fetch.member_id

    def set_member_id(self, name: str) -> None:
        """Set the member id, before the source starts.

        Raises:
            ConfigurationError: the name is empty or not a str.
            ConsumerStateError: it has started.
        """
        if self.state != "new":
            raise ConsumerStateError(
                f"the member id cannot be changed: the {self.owner} has started"
            )
        self.settings = self.settings.with_member_id(name)

    # Taking.

    async def take(self, max_records: int, *, timeout: float) -> list[Any]:
        """Take records; as `RecordTaker.take`."""
        return await self._taker.take(max_records, timeout=timeout)

    def take_leases(self) -> list[Lease]:
        """Take all records that have arrived, undecoded; as `LeaseBuffer`."""
        return self.buffer.take_leases()

    def take_error(self) -> Exception | None:
        """Return the next error that `take` would raise, or None."""
        return self.buffer.take_error()

    @property
    def buffered(self) -> int:
        """How many records have arrived that were not taken."""
        return self.buffer.count

    @property
    def servers(self) -> str:
        """The brokers that it connects to first, for messages."""
        return ", ".join(map(str, self.settings.cluster.bootstrap))

    @property
    def max_records(self) -> int:
        """The records of one round of fetches."""
        return self.settings.fetch.max_records

    @property
    def fatal_error(self) -> Error | None:
        """The error that has ended the member, or None."""
        try:
            self.buffer.raise_fatal_error()
        except Error as error:
            return error
        return None

    def leave_out(self, topics: frozenset[str]) -> None:
        """Fetch nothing from these topics; return their records that have arrived."""
        self._started.leave_out(topics)

    def set_paused(self, topics: frozenset[str], *, releases: bool = True) -> None:
        """Pause these topics, and no others; as `ShareMember.set_paused`."""
        super().set_paused(topics, releases=releases)
        self._taker.on_ready()

    def drop_lost(self) -> None:
        """Report records of paused topics whose locks have ended (`on_undelivered`)."""
        self.buffer.drop_lost()

    # Settling.

    def acknowledge(self, record: Any, kind: AcknowledgeType) -> None:
        """Settle a record, even if the methods of records raise (`is_guarded`).

        Raises:
            LockLostError, RecordStateError, ClosedError: as `Record.accept`.
        """
        result_log = self._started.result_log
        was_guarded, result_log.is_guarded = result_log.is_guarded, False
        try:
            if kind is ACCEPT:
                record.accept()
            elif kind is RELEASE:
                record.release()
            else:
                record.reject()
        finally:
            result_log.is_guarded = was_guarded

    # The end.

    async def drain(
        self, timeout: float = FOREVER, on_fetched: Callable[[], None] = lambda: None
    ) -> None:
        """Fetch no more; wait until all records are settled and acknowledged.

        As `ShareMember.drain`. Records of paused topics can be taken again.
        """
        # Withheld records are renewed, so a drain would wait for them for ever.
        if self.paused:
            self.buffer.set_paused(frozenset())
            self._taker.on_ready()
        await super().drain(timeout, on_fetched)

    @property
    def response_timeout(self) -> float:
        """Seconds for the response to a fetch, while the source drains."""
        return max(SHORT_SETTLE_TIMEOUT, self.settings.fetch.max_wait + RESPONSE_MARGIN)

    @property
    def settling_deadline(self) -> float:
        """When the member leaves the group, even if leaders do not respond."""
        return self._started.settling.deadline
