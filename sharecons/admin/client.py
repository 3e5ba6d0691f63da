"""`ShareGroupAdmin`: questions to a cluster about its groups, and changes to them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sharecons._record import TopicPartition
from sharecons.admin import (
    alter_offsets,
    cluster,
    configs,
    consumer_offsets,
    groups,
    offsets,
    state,
    topics,
)
from sharecons.config import validation
from sharecons.config.security import Security
from sharecons.errors import ClosedError
from sharecons.net.admin_executor import AdminExecutor
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.cluster import Cluster
from sharecons.net.io.transport import Network
from sharecons.net.loop_guard import LoopGuard
from sharecons.protocol.admin.models import (
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConsumerGroup,
    Features,
    GroupListing,
    GroupOffset,
    LogOffset,
    OffsetSpec,
    ShareGroup,
    SharePartitionState,
    StateSummary,
    Topic,
)
from sharecons.protocol.admin.results import Outcome, Results
from sharecons.version import VERSION

if TYPE_CHECKING:
    # Records, with their compression, are loaded when somebody reads some: most
    # commands do not, and are to start fast.
    from sharecons.protocol.diagnosis.state_replay import RecordedState
    from sharecons.protocol.log_reader.log_slice import LogSlice

__all__ = ["ShareGroupAdmin"]


class ShareGroupAdmin:
    """Asks brokers about groups, and changes them (KIP-932, "Admin").

        async with ShareGroupAdmin("localhost:9092") as admin:
            described = await admin.describe_groups("billing")
            print(described["billing"].value.state)

    Entering connects to nothing; the first question does. Questions may be asked
    side by side from several tasks. Whatever is asked about several things gives
    `Results`: for each its value or its own error, so that one group's trouble hides
    nothing of the others. What is told of a broker (coordinator moved, loading, no
    leader, connection lost) is asked again within `timeout`.

    Cancelling a question loses nothing; of a change it is then unknown whether it
    was made.

    Args:
        bootstrap_servers: `host:port`, several with commas or as a sequence.
        client_id: for brokers' logs and quotas.
        security: TLS and SASL; None is plain TCP.
        timeout: seconds that one call may take in all.
        connect_timeout: seconds in which to reach a first broker; refused and unknown
            addresses are tried again until then. With 0 each is tried once.
        network: how to connect, for tests.

    Raises:
        ConfigurationError: an argument makes no sense.

    Every method may raise, where nothing could be asked at all:
        ConnectionFailedError: no broker was reached in time, and why.
        UnsupportedVersionError: the cluster does not serve this question.
        ConfigurationError: an argument makes no sense; nothing was sent.
        ClosedError: it was closed.
        WrongThreadError: called outside of the event loop of the first call.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        *,
        client_id: str = "sharecons",
        security: Security | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 10.0,
        network: Network | None = None,
    ) -> None:
        validation.check_number("timeout", timeout, 0.001, validation.HOUR)
        validation.check_number(
            "connect_timeout", connect_timeout, 0.0, validation.HOUR
        )
        self._brokers = BrokerPool(
            Cluster(
                validation.parse_bootstrap(bootstrap_servers),
                network,
                client_id=validation.check_string("client_id", client_id),
                software_version=VERSION,
                security=security,
            ),
            connect_timeout,
        )
        self._timeout = timeout
        self._closed = False
        self._loop_guard: LoopGuard | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Do nothing yet: the first question connects. `stop` is its counterpart.

        Raises:
            ClosedError: it was closed.
        """
        self._check_open()

    async def stop(self) -> None:
        """Close the connections, as `aclose` does; any task may call this."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; may be called again.

        Raises:
            WrongThreadError: this is not the event loop of the earlier calls.
        """
        if self._loop_guard is not None:
            self._loop_guard.check()
        self._closed = True
        await self._brokers.aclose()

    # Groups.

    async def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = ("share",)
    ) -> GroupListing:
        """List groups of all brokers, by state and type; no `types` lists every one.

        States and types are taken in any case ("stable", "Stable").
        """
        names = (
            validation.check_names("states", states),
            validation.check_names("types", types),
        )
        return await groups.list_groups(self._questions(), *names)

    async def describe_share_groups(
        self, *group_ids: str, authorized_operations: bool = False
    ) -> Results[str, ShareGroup]:
        """Describe share groups: state, epochs, coordinator, members, assignment.

        A group that is not there, or is no share group, has a `BrokerError` of
        GROUP_ID_NOT_FOUND.
        """
        names = validation.check_group_ids(group_ids)
        questions = self._questions()
        return await groups.describe_share_groups(
            questions, names, authorized_operations
        )

    async def describe_group(
        self, group_id: str, *, authorized_operations: bool = False
    ) -> ShareGroup:
        """Describe one share group.

        Raises:
            BrokerError: the group does not exist or is of another type
                (GROUP_ID_NOT_FOUND), or its coordinator rejects the request.
            RequestTimedOutError: its coordinator returned nothing within `timeout`.
        """
        described = await self.describe_share_groups(
            group_id, authorized_operations=authorized_operations
        )
        return described[group_id].value

    async def describe_consumer_groups(
        self, *group_ids: str, authorized_operations: bool = False
    ) -> Results[str, ConsumerGroup]:
        """Describe consumer groups, classic and new ones (KIP-848) alike."""
        names = validation.check_group_ids(group_ids)
        return await groups.describe_consumer_groups(
            self._questions(), names, authorized_operations
        )

    async def delete_share_groups(self, *group_ids: str) -> Results[str, None]:
        """Delete share groups, with all that they know; a group of another type stays.

        A group with members has a `BrokerError` of NON_EMPTY_GROUP.
        """
        names = validation.check_group_ids(group_ids)
        return await groups.delete_share_groups(self._questions(), names)

    # Where share groups stand.

    async def list_share_group_offsets(
        self, *group_ids: str, partitions: Iterable[TopicPartition] | None = None
    ) -> Results[str, Results[TopicPartition, GroupOffset]]:
        """List start offset, leader epoch and lag of groups, partition by partition.

        None as `partitions` is all that the group knows of. The lag counts records not
        yet delivered to an end (KIP-1226): those acknowledged out of order are off.
        """
        names = validation.check_group_ids(group_ids)
        wanted = validation.check_partitions(partitions)
        return await offsets.list_share_group_offsets(self._questions(), names, wanted)

    async def alter_share_group_offsets(
        self, group_id: str, wanted: Mapping[TopicPartition, int | OffsetSpec]
    ) -> Results[TopicPartition, int]:
        """Set start offsets of an empty group; gives the offsets that were set.

        Records above the new start offset are delivered anew, also those that were
        acknowledged. An `OffsetSpec` is looked up first; a time after the last
        record's means the end. A group that is not there is made.
        """
        validation.check_group_id(group_id)
        validation.check_partitions(wanted)
        alter_offsets.check_offsets(wanted)
        return await alter_offsets.alter_share_group_offsets(
            self._questions(), group_id, wanted
        )

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str]
    ) -> Results[str, None]:
        """Make an empty group forget topics; it would begin them anew."""
        validation.check_group_id(group_id)
        names = validation.check_topic_names(topics)
        return await alter_offsets.delete_share_group_offsets(
            self._questions(), group_id, names
        )

    async def read_state(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> Results[TopicPartition, SharePartitionState]:
        """Read what the share coordinator keeps of share-partitions, offset by offset.

        It disturbs nobody. Needs CLUSTER_ACTION on the cluster, as brokers have it.
        """
        validation.check_group_id(group_id)
        wanted = validation.check_partitions(partitions)
        return await state.read_state(self._questions(), group_id, wanted)

    async def read_state_summary(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> Results[TopicPartition, StateSummary]:
        """Read the outline of share-partitions; needs what `read_state` does."""
        validation.check_group_id(group_id)
        wanted = validation.check_partitions(partitions)
        return await state.read_state_summary(self._questions(), group_id, wanted)

    async def read_state_records(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> "Results[TopicPartition, RecordedState | None]":
        """Read the same from the records of `__share_group_state`; None: none is there.

        For who has READ on that topic but no CLUSTER_ACTION. Also tells when the state
        was last written. Takes longer: it reads what was written of other groups too.

        Raises:
            ProtocolError: the records are of a kind that this client does not know.
        """
        validation.check_group_id(group_id)
        from sharecons.admin.state_records import read_state_records

        wanted = validation.check_partitions(partitions)
        return await read_state_records(self._questions(), group_id, wanted)

    # Configs.

    async def describe_configs(
        self, *group_ids: str
    ) -> Results[str, Mapping[str, ConfigEntry]]:
        """Read groups' configs by name, with their defaults."""
        names = validation.check_group_ids(group_ids)
        return await configs.describe_configs(self._questions(), names)

    async def incremental_alter_configs(
        self,
        group_id: str,
        wanted: Mapping[str, str | int | bool | None],
        *,
        validate_only: bool = False,
    ) -> Outcome[None]:
        """Set configs of a group; None sets one back to its default.

        All or nothing. Waits until the coordinator shows them.

        Raises:
            ConfigurationError: no such config, or a value out of bounds (those of the
                KIP, and of the brokers where they may be read); nothing was sent.
        """
        validation.check_group_id(group_id)
        for name, value in wanted.items():
            validation.check_string("config name", name)
            if isinstance(value, str):
                validation.check_string(name, value)
        return await configs.incremental_alter_configs(
            self._questions(), group_id, wanted, validate_only
        )

    async def describe_broker_configs(
        self, *names: str, node_id: int | None = None
    ) -> Mapping[str, ConfigEntry]:
        """Read configs of a broker, any one if `node_id` is None; no names reads all.

        Raises:
            AuthorizationError, BrokerError: the broker does not tell.
        """
        wanted = validation.check_names("names", names)
        return await cluster.describe_broker_configs(self._questions(), wanted, node_id)

    # Topics and their logs.

    async def describe_topics(
        self, *names: str, authorized_operations: bool = False
    ) -> Results[str, Topic]:
        """Describe topics: ids, partitions, leaders; no names are all of them."""
        wanted = validation.check_topic_names(names)
        return await topics.describe_topics(
            self._questions(), wanted, authorized_operations
        )

    async def list_offsets(
        self,
        partitions: Iterable[TopicPartition] | Mapping[TopicPartition, OffsetSpec],
        spec: OffsetSpec = OffsetSpec.LATEST,
        *,
        read_committed: bool = False,
    ) -> Results[TopicPartition, LogOffset]:
        """Look up offsets in the partitions' logs; a mapping says a spec for each."""
        wanted = validation.check_partitions(partitions) or ()
        specs = dict.fromkeys(wanted, spec)
        if isinstance(partitions, Mapping):
            specs = dict(partitions)
        return await topics.list_offsets(self._questions(), specs, read_committed)

    async def read_log(
        self, offsets: Mapping[TopicPartition, int], *, max_bytes: int = 1 << 20
    ) -> "Results[TopicPartition, LogSlice]":
        """Read records from these offsets on, without consuming them.

        One request to each leader, which waits for nothing: what is there comes, up to
        about `max_bytes` of a partition. Read on from each piece's `next_offset`.
        Records of open and aborted transactions are among them.
        """
        from sharecons.admin.read_log import read_log

        validation.check_partitions(offsets)
        return await read_log(self._questions(), offsets, max_bytes)

    # Consumer groups' offsets, to move over from and to.

    async def list_consumer_group_offsets(
        self, *group_ids: str, partitions: Iterable[TopicPartition] | None = None
    ) -> Results[str, Results[TopicPartition, CommittedOffset | None]]:
        """Read what consumer groups, classic or new, committed.

        None as `partitions` is all that they committed; a partition that was named
        and has nothing committed has None.
        """
        names = validation.check_group_ids(group_ids)
        wanted = validation.check_partitions(partitions)
        return await consumer_offsets.list_consumer_group_offsets(
            self._questions(), names, wanted
        )

    async def alter_consumer_group_offsets(
        self, group_id: str, wanted: Mapping[TopicPartition, int | CommittedOffset]
    ) -> Results[TopicPartition, None]:
        """Commit for a consumer group without members, as no member of it.

        A group that is not there is made, as a classic one. One with members has
        UNKNOWN_MEMBER_ID for each partition.
        """
        validation.check_group_id(group_id)
        validation.check_partitions(wanted)
        committing = {
            key: CommittedOffset(offset=offset) if isinstance(offset, int) else offset
            for key, offset in wanted.items()
        }
        return await consumer_offsets.alter_consumer_group_offsets(
            self._questions(), group_id, committing
        )

    # The cluster.

    async def describe_cluster(
        self, *, authorized_operations: bool = False
    ) -> ClusterDescription:
        """Describe the cluster: its id, brokers, and controller."""
        questions = self._questions()
        return await cluster.describe_cluster(questions, authorized_operations)

    async def describe_features(self, *, node_id: int | None = None) -> Features:
        """Read features and API versions of a broker, any one if `node_id` is None."""
        return await cluster.describe_features(self._questions(), node_id)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the admin is closed; make another one")
        if self._loop_guard is None:
            self._loop_guard = LoopGuard("admin")
        self._loop_guard.check()

    def _questions(self) -> AdminExecutor:
        self._check_open()
        return AdminExecutor(self._brokers, Deadline(self._timeout))
