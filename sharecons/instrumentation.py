"""Observers of clients, for the traces and metrics of an application.

`sharecons.otel` implements this for OpenTelemetry, and no other module imports it. A
client without instrumentation does nothing for each record.

Contract: an observer raises nothing, and awaits nothing of its own. Its context
managers are entered and left in one task. They change no exception of their blocks.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from sharecons._record import Record
from sharecons.config.not_given import NOT_GIVEN, NotGiven
from sharecons.errors import ConfigurationError
from sharecons.protocol.partitions import TopicId
from sharecons.protocol.share_messages import (
    Acknowledgements,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)
from sharecons.records.encoder import NewRecord

__all__ = [
    "Client",
    "Instrumentation",
    "MemberObserver",
    "Receive",
    "Send",
    "SendObserver",
    "Settle",
    "choose_instrumentation",
    "set_default",
]


class Client(NamedTuple):
    """A client that is observed.

    Attributes:
        client_id: as brokers log it.
        group_id: its share group; None for a producer.
        cluster_id: returns the id of the cluster; None before it is known.
    """

    client_id: str
    group_id: str | None
    cluster_id: Callable[[], str | None]


class Send(Protocol):
    """A call that writes records.

    Attributes:
        records: replace the given records, so that headers can be added.
        outcomes: set this to the position or the error of each record.
    """

    @property
    def records(self) -> Sequence[NewRecord]: ...

    outcomes: Sequence[Any]


class SendObserver(Protocol):
    """Observes a producer."""

    def sending(
        self, topics: Sequence[str], records: Sequence[NewRecord]
    ) -> AbstractContextManager[Send]:
        """Observe a call that writes records to these topics."""
        ...


class Receive(Protocol):
    """A call that waits for records.

    Attributes:
        records: set this to the records that the application receives.
        is_batch: the call can return several records.
    """

    records: Sequence[Any]
    is_batch: bool


class Settle(Protocol):
    """A request that acknowledges records.

    Attributes:
        response: set this to the broker's response.
    """

    response: ShareFetchResponse | ShareAcknowledgeResponse | None


class MemberObserver(Protocol):
    """Observes a consumer or a worker."""

    def receiving(self) -> AbstractContextManager[Receive]:
        """Observe a call of the application that waits for records."""
        ...

    async def process(
        self, attempt: Any, call_next: Callable[[], Awaitable[None]], /
    ) -> None:
        """Observe a call of a worker's handler, as its outermost middleware."""
        ...

    def copying(self, record: Record) -> AbstractContextManager[None]:
        """Connect the copy that is written in the block with the record's attempt."""
        ...

    def settling(
        self, topic_names: Mapping[TopicId, str], acknowledgements: Acknowledgements
    ) -> AbstractContextManager[Settle]:
        """Observe a request that acknowledges records.

        Its records include some that the application has never received, such as
        prefetched records that are released.
        """
        ...


class Instrumentation(Protocol):
    """Returns what observes each client."""

    def observe_producer(self, client: Client) -> SendObserver:
        """Return what observes the records that an application writes."""
        ...

    def observe_copies(self, client: Client) -> SendObserver:
        """Return what observes copies of records: retries, dead letters, redrives."""
        ...

    def observe_member(self, client: Client) -> MemberObserver:
        """Return what observes a member of a share group."""
        ...


_default: Instrumentation | None = None


def set_default(instrumentation: Instrumentation | None) -> None:
    """Set what observes the clients that are created without the argument."""
    global _default
    _default = instrumentation


def choose_instrumentation(
    given: Instrumentation | None | NotGiven,
) -> Instrumentation | None:
    """Return the instrumentation of a new client.

    Raises:
        ConfigurationError: it is not one.
    """
    if given is NOT_GIVEN:
        return _default
    if given is None:
        return None
    if isinstance(given, type) or not hasattr(given, "observe_member"):
        raise ConfigurationError(
            "instrumentation must be an instance of sharecons.otel.OpenTelemetry, or "
            f"None, not {given!r:.200}"
        )
    return given
