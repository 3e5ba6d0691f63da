"""The settings of one member of a share group."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, Self, Unpack, get_args

from sharecons.config.not_given import NOT_GIVEN, NotGiven
from sharecons.config.options import Option, option, options_of, read_options
from sharecons.config.validation import (
    HOUR,
    check_bool,
    check_choice,
    check_count,
    check_group_id,
    check_number,
    check_optional_name,
    member_id_of,
)
from sharecons.instrumentation import MemberObserver, SendObserver
from sharecons.member.group_setup import OffsetReset
from sharecons.net.cluster import Cluster
from sharecons.net.settings import (
    ClientSettings,
    ConnectionOptions,
    ConnectionSettings,
)
from sharecons.protocol.fetch.settings import FetchSettings

__all__ = ["MEMBER_OPTIONS", "TABLES", "MemberOptions", "MemberSettings"]

AcquireMode = Literal["batch_optimized", "record_limit"]
Values = Literal["bytes", "memoryview"]


class MemberOptions(ConnectionOptions, total=False):
    """How a member connects, joins its group and fetches.

    These are keyword arguments of `ShareConsumer` and `ShareWorker`.
    """

    auto_offset_reset: str | None | NotGiven
    max_records: int
    acquire_mode: AcquireMode
    values: Values
    max_wait: float
    min_bytes: int
    max_bytes: int
    member_id: str | None
    client_rack: str | None
    enable_metrics_push: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The options of which `FetchSettings` are made."""

    max_records: int = option(
        2000,
        partial(check_count, minimum=1),
        "maximum number of records in one round of fetches, softly: whole batches of "
        "producers come together. Below this number the pace of the application "
        "decides: the records that it processes in 0.25 s and two round trips, or in "
        "half of the lock duration (15 s by default) where batches are larger than "
        "32 KiB and than that. All of them use up a delivery if the process dies",
        kafka_property="max.poll.records",
    )
    acquire_mode: AcquireMode = option(
        "batch_optimized",
        partial(check_choice, choices=get_args(AcquireMode)),
        '"record_limit" makes `max_records` exact (Kafka 4.2)',
        kafka_property="share.acquire.mode",
    )
    max_wait: float = option(
        0.5,
        partial(check_number, minimum=0, maximum=HOUR),
        "seconds that a fetch waits at the broker for records",
        kafka_property="fetch.max.wait.ms",
    )
    min_bytes: int = option(
        1,
        partial(check_count, minimum=0),
        "of one fetch response. At high rates it is raised to what arrives in two "
        "milliseconds",
        kafka_property="fetch.min.bytes",
    )
    max_bytes: int = option(
        8 << 20,
        partial(check_count, minimum=1),
        "of one fetch response; a soft limit. For small records in many partitions up "
        "to four times this size is requested. `max_held_bytes` limits the records "
        "that a worker holds",
        shown="8 MiB",
        kafka_property="fetch.max.bytes",
    )
    member_id: str | None = option(
        None,
        lambda _, name: member_id_of(name),
        "identifies this member. A process that keeps its id when it restarts (a pod's "
        "name, for example) gets its partitions again immediately; with a new id it "
        "waits for the old member's session timeout (45 s). Never use an id twice at "
        "the same time. Any name; it is converted to a UUID",
        shown="a new one",
    )

    def fetch_settings(self, group_id: str) -> FetchSettings:
        return FetchSettings(
            group_id=check_group_id(group_id),
            member_id=self.member_id or member_id_of(None),
            max_wait=self.max_wait,
            min_bytes=self.min_bytes,
            max_bytes=self.max_bytes,
            max_records=self.max_records,
            record_limit=self.acquire_mode == "record_limit",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings(ClientSettings):
    """The settings with which a member joins its group; times in seconds.

    Attributes:
        fetch: the group, the member id, and the limits of a fetch.
        cluster: opens connections.
    """

    fetch: FetchSettings
    cluster: Cluster
    auto_offset_reset: OffsetReset = option(
        OffsetReset(None, is_default=True),
        lambda _, value: OffsetReset.of(value),
        "sets the group's `share.auto.offset.reset` before joining: "
        '"earliest", "latest" or "by_duration:<ISO 8601>". None leaves the group '
        "unchanged; Kafka's default is latest, so that a new group's first run sees "
        "only what comes after it joined. If it is not given, a consumer leaves the "
        "group unchanged, and a worker sets earliest if the group has no value of its "
        "own",
        shown="not given",
    )
    client_rack: str | None = option(
        None,
        check_optional_name,
        "for brokers that assign by rack",
        kafka_property="client.rack",
    )
    values: Values = option(
        "bytes",
        partial(check_choice, choices=get_args(Values)),
        '"memoryview" delivers values as read-only views of the response\'s memory '
        "instead of copies; docs/consumer.md has the costs",
    )
    enable_metrics_push: bool = option(
        True,
        check_bool,
        "whether brokers that collect metrics of their clients (KIP-714) receive them; "
        "needs the extra `telemetry`. See docs/metrics.md",
        kafka_property="enable.metrics.push",
    )

    @classmethod
    def of(cls, owner: str, group_id: str, **options: Unpack[MemberOptions]) -> Self:
        """Return the settings for the arguments of `ShareConsumer` or `ShareWorker`.

        Args:
            owner: the called class, for messages.

        Raises:
            ConfigurationError: an argument is invalid or unknown.
        """
        given = {"instrumentation": NOT_GIVEN, **options}
        connection, limits, own = read_options(owner, given, *TABLES)
        return cls(
            fetch=FetchLimits(**limits).fetch_settings(group_id),
            cluster=ConnectionSettings(**connection).new_cluster(),
            **own,
        )

    @property
    def has_views(self) -> bool:
        return self.values == "memoryview"

    def with_member_id(self, name: str) -> Self:
        """Return the settings with the member id of this name.

        Raises:
            ConfigurationError: the name is empty or not a str.
        """
        member_id = member_id_of(name)
        return replace(self, fetch=replace(self.fetch, member_id=member_id))

    def new_observer(self) -> MemberObserver | None:
        """Return the observer of a member with these settings, if anything observes."""
        if self.instrumentation is None:
            return None
        client = self.cluster.as_client(self.fetch.group_id)
        return self.instrumentation.observe_member(client)

    def observe_copies(self) -> SendObserver | None:
        """Return the observer of copies of the member's records, as `new_observer`."""
        if self.instrumentation is None:
            return None
        client = self.cluster.as_client(self.fetch.group_id)
        return self.instrumentation.observe_copies(client)


TABLES: Final = (ConnectionSettings, FetchLimits, MemberSettings)

MEMBER_OPTIONS: Final[Mapping[str, Option]] = {
    name: entry for table in TABLES for name, entry in options_of(table).items()
}
"""The options of a member, by name."""
