"""`RecordSource`: the one way in which the core's users receive and settle records.

`ShareSource` is the source of a share group. A source of another kind can be used
instead, one in memory for example, or one that keeps a map of settled offsets for a
classic consumer group: a worker uses nothing beside this interface.

Records are objects as `Record`: the user settles each one by `acknowledge`, and keeps
its lock by `renew`. `lock_deadline` and `held` show the state of the lock. All calls
belong to the event loop that the source was started in. Times are in seconds, points in
time on the clock of `anyio.current_time()`.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol
from uuid import UUID

from sharecons.errors import Error
from sharecons.instrumentation import MemberObserver
from sharecons.metrics.application_metrics import ApplicationMetrics
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.io.event_loop import FOREVER
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.protocol.fetch.demand import FetchDemand
from sharecons.record import AcknowledgeType, TopicPartition

__all__ = [
    "SHORT_SETTLE_TIMEOUT",
    "Acknowledged",
    "LeaseSource",
    "RecordSource",
    "SourceConfigs",
    "SourceState",
]

Acknowledged = Callable[[list[AcknowledgeResult]], object]
"""The application's callback for results of acknowledgements."""

SHORT_SETTLE_TIMEOUT: Final = 0.55
"""Seconds to send the last acknowledgements if nothing must be acknowledged, or if the
source must end immediately. Longer than the default `max_wait`, as a fetch in flight
delays what follows on its connection."""


class SourceConfigs(Protocol):
    """The rules by which records are delivered; they can change.

    Attributes:
        delivery_limit: how often a record is delivered; 0 if it is not known.
        renews: whether locks can be renewed; None if it is not known.
        window: records that a partition has in flight at most; 0 if not known.
    """

    delivery_limit: int
    renews: bool | None
    window: int

    def subscribe(self, listener: Callable[[], object]) -> None:
        """Call a function after each reading."""

    async def read(self) -> None:
        """Read the rules again; a rule that cannot be read keeps its value.

        Cancelling this changes nothing.
        """


class SourceState(Protocol):
    """The state of a source, for health checks and metrics, before and after its run.

    Attributes:
        state: a start that fails returns to new.
        recorder: the metrics.
        application_metrics: the application's, which are pushed as well.
        observer: observes what is delivered and settled, if anything does.
        topics: the subscription.
    """

    state: Literal["new", "starting", "open", "closing", "closed"]
    recorder: MetricsRecorder
    application_metrics: ApplicationMetrics
    observer: MemberObserver | None
    topics: tuple[str, ...]

    @property
    def group_id(self) -> str:
        """The group."""
        ...

    @property
    def member_id(self) -> str:
        """The member id in the group."""
        ...

    @property
    def servers(self) -> str:
        """The brokers that it connects to first, for messages."""
        ...

    @property
    def is_connected(self) -> bool:
        """True while records can arrive, and can be settled."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that last now and are logged as warnings."""
        ...

    @property
    def seconds_since_heartbeat(self) -> float | None:
        """Seconds since the group last accepted a heartbeat, or None."""
        ...

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions; other members can have them as well."""
        ...

    async def assigned(self) -> frozenset[TopicPartition]:
        """Wait until partitions of the topics are assigned, and return them.

        Cancelling this changes nothing.

        Raises:
            AuthorizationError, BrokerError: a topic or partition cannot be read.
            ClosedError, NotSubscribedError, ConsumerStateError: it cannot be read now.
            Error: the error that ended the source.
        """
        ...

    @property
    def missing_topics(self) -> frozenset[str]:
        """The topics that do not exist, as far as that is known."""
        ...

    async def client_instance_id(self, timeout: float) -> UUID | None:
        """Return the id that brokers have assigned to this client (KIP-714)."""
        ...

    def check_caller(self) -> None:
        """Raise WrongThreadError outside of the event loop that it was started in."""


class RecordSource(SourceState, Protocol):
    """Records from their arrival to the end of their locks.

    It is made from `SourceOptions`, with the functions that it calls when records
    arrive and when locks are lost; nothing is set afterwards.

    Attributes:
        demand: decides how much is fetched; once the source has started.
        configs: the rules of the group; once the source has started.
    """

    demand: FetchDemand

    @property
    def configs(self) -> SourceConfigs: ...

    # The start.

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Replace the topics; records of others that have arrived are released."""

    def set_member_id(self, name: str) -> None:
        """Set the member id.

        Raises:
            ConfigurationError: the name is empty or not a str.
            ConsumerStateError: the source has started.
        """

    async def start(self) -> None:
        """Connect, await `check_before_joining`, and begin to join the group.

        Cancelling this leaves nothing behind but, perhaps, a config of the group.

        Raises:
            ConnectionFailedError, AuthenticationError, UnsupportedVersionError,
            AuthorizationError: it cannot start.
            ConsumerStateError: it was started before.
            Error: as `check_before_joining`.
        """

    # Taking.

    async def take(self, max_records: int, *, timeout: float) -> list[Any]:
        """Return up to `max_records` records; wait for the first `timeout` seconds.

        Waiting requests records, within the demand. Cancelling this loses nothing.
        The user holds the records then: it settles each of them, and keeps their locks.

        Raises:
            ClosedError: the source is closed.
            RecordsError: records are damaged; the next call returns others.
            Error: an error of a topic or partition, once; or the error that ended the
                source (`fatal_error`).
        """
        ...

    @property
    def buffered(self) -> int:
        """How many records have arrived that were not taken.

        Nothing renews their locks, unless their topic is paused.
        """
        ...

    @property
    def max_records(self) -> int:
        """The records of one round of fetches."""
        ...

    def leave_out(self, topics: frozenset[str]) -> None:
        """Fetch nothing from these topics; return their records that have arrived."""

    @property
    def paused(self) -> frozenset[str]:
        """The topics whose records do not arrive, and are not returned."""
        ...

    def set_paused(self, topics: frozenset[str], *, releases: bool = True) -> None:
        """Pause these topics, and no others.

        Their records that were not taken are withheld, with their locks.

        Args:
            releases: release the ones on their first delivery after a minute.
        """

    def drop_lost(self) -> None:
        """Report records of paused topics whose locks have ended (`on_undelivered`)."""

    @property
    def has_failed(self) -> bool:
        """True if an error, or the end of the event loop, has ended the source."""
        ...

    @property
    def fatal_error(self) -> Error | None:
        """The error that has ended the source, or None."""
        ...

    @property
    def lock_duration(self) -> float | None:
        """Seconds for which records are locked; None if not known yet."""
        ...

    # Settling.

    def acknowledge(self, record: Any, kind: AcknowledgeType) -> None:
        """Settle a record: the acknowledgement is sent soon, and can still fail.

        Raises:
            LockLostError: the lock was lost; the record is delivered again. The
                callback for results receives this as well.
            RecordStateError: the record is settled already.
            ClosedError: the source is closed, which released the record.
        """

    async def commit(self, timeout: float) -> object:
        """Send pending acknowledgements, and wait for their results.

        After a cancel or `timeout` seconds they are still sent.

        Raises:
            CommitTimeoutError: some results have not arrived in time.
            ClosedError: the source is closed.
            Error: the error that ended the source.
        """

    # The end.

    async def drain(
        self, timeout: float = FOREVER, on_fetched: Callable[[], None] = lambda: None
    ) -> None:
        """Fetch no more; wait until all records are settled and acknowledged.

        Records that have arrived can still be taken, even records of paused topics.
        Once none is unsettled, fetches in flight have `timeout` seconds. Call
        `close_soon` next, even after cancelling this.

        Args:
            on_fetched: is called once no fetch is in flight.
        """

    @property
    def response_timeout(self) -> float:
        """Seconds for the response to a fetch, while the source drains."""
        ...

    async def close_soon(self) -> None:
        """Send acknowledgements, release what is not settled, and leave the group.

        It takes seconds even if brokers do not respond. Cancelling this calls
        `shorten_close`.
        """

    def shorten_close(self) -> None:
        """End a close, now or later, within a second."""

    @property
    def settling_deadline(self) -> float:
        """When the source leaves the group, even if leaders do not respond."""
        ...

    def raise_unreported_crash(self) -> None:
        """Raise the failure of a background task that no call has raised yet."""


class LeaseSource(RecordSource, Protocol):
    """A source whose records are leases of a share group, for users that need them.

    Spark writes offsets to its ledger, so it never decodes a lease. `take_leases` and
    `take_error` are called in `SourceOptions.on_changed`, in place of `take`.
    """

    def take_leases(self) -> list[Lease]:
        """Take all records that have arrived, undecoded; settle them in their lease."""
        ...

    def take_error(self) -> Exception | None:
        """Return the next error that `take` would raise, or None."""
        ...

    def check_can_fetch(self) -> None:
        """Raise the error of a fetch that is repeated now, if any."""

    async def close(self, timeout: float, *, leave: bool = True) -> None:
        """Send acknowledgements, release what is not settled, and leave the group.

        After `timeout` seconds, or if this is cancelled, the connections are closed.
        Then the broker releases the records, and removes the member after its session
        timeout. The same if `leave` is false, without waiting for anything.
        """
