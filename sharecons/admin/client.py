"""`ShareGroupAdmin`: describe and change the groups of a cluster."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from sharecons._record import TopicPartition
from sharecons.admin import (
    alter_offsets,
    cluster,
    configs,
    consumer_offsets,
    groups,
    offsets,
    state,
)
from sharecons.admin.topic_methods import TopicMethods
from sharecons.config import validation
from sharecons.net.topics import describe_configs
from sharecons.protocol.admin.models import (
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConsumerGroup,
    Features,
    GroupListing,
    GroupOffset,
    OffsetSpec,
    ShareGroup,
    SharePartitionState,
    StateSummary,
)
from sharecons.protocol.admin.requests import ResourceKind
from sharecons.protocol.admin.results import Result, Results

if TYPE_CHECKING:
    # The record decoder and its codecs are loaded on first use, so that commands that
    # read no records start fast.
    from sharecons.admin.state_replay import RecordedState

__all__ = ["ShareGroupAdmin"]


class ShareGroupAdmin(TopicMethods):
    """An admin client for share groups (KIP-932, "Admin").

        async with ShareGroupAdmin(bootstrap_servers="kafka:9092") as admin:
            group = await admin.describe_group("billing")
            print(group.state)

    The first call connects; entering does not. Several tasks can call at the same
    time. Methods that take several groups, topics or partitions return `Results`: for
    each of them its value or its own error. Requests that fail for a reason that
    passes (coordinator moved or loading, no leader, connection lost) are repeated
    within `timeout`.

    You can cancel any call; a cancelled change might have been made.

    Args:
        bootstrap_servers: `host:port`, several separated by commas or as a sequence.
        client_id: for the brokers' logs and quotas.
        security: TLS and SASL; None is plain TCP.
        timeout: seconds for one call in all.
        connect_timeout: seconds to reach a first broker. Addresses that refuse or are
            unknown are retried until then; with 0 each is tried once.
        network: how to connect, for tests.

    Raises:
        ConfigurationError: an argument is invalid.

    Every method raises, if it cannot send any request:
        ConnectionFailedError: no broker was reached in time; the message says why.
        UnsupportedVersionError: the cluster does not support the request.
        ConfigurationError: an argument is invalid; nothing was sent.
        ClosedError: the admin client is closed.
        WrongThreadError: the call is outside of the event loop of the first call.
    """

    # Groups.

    async def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = ("share",)
    ) -> GroupListing:
        """List the groups of all brokers, by state and type; no `types` means all.

        States and types can have any case ("stable", "Stable").
        """
        names = (
            validation.check_names("states", states),
            validation.check_names("types", types),
        )
        return await groups.list_groups(self._executor(), *names)

    async def describe_share_groups(
        self, *group_ids: str, authorized_operations: bool = False
    ) -> Results[str, ShareGroup]:
        """Describe share groups: state, epochs, coordinator, members, assignment.

        A group that does not exist or is of another type has a `BrokerError` with
        GROUP_ID_NOT_FOUND.
        """
        names = validation.check_group_ids(group_ids)
        return await groups.describe_share_groups(
            self._executor(), names, authorized_operations
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
        """Describe consumer groups: classic groups and groups of KIP-848."""
        names = validation.check_group_ids(group_ids)
        return await groups.describe_consumer_groups(
            self._executor(), names, authorized_operations
        )

    async def delete_share_groups(self, *group_ids: str) -> Results[str, None]:
        """Delete share groups with their offsets; reject groups of another type.

        A group with members has a `BrokerError` with NON_EMPTY_GROUP.
        """
        names = validation.check_group_ids(group_ids)
        return await groups.delete_share_groups(self._executor(), names)

    # Offsets and state of share groups.

    async def list_share_group_offsets(
        self, *group_ids: str, partitions: Iterable[TopicPartition] | None = None
    ) -> Results[str, Results[TopicPartition, GroupOffset]]:
        """List start offset, leader epoch and lag of groups, per partition.

        None as `partitions` means all that the group has state of. The lag counts
        records that are neither acknowledged nor archived (KIP-1226).
        """
        names = validation.check_group_ids(group_ids)
        wanted = validation.check_partitions(partitions)
        return await offsets.list_share_group_offsets(self._executor(), names, wanted)

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetSpec]
    ) -> Results[TopicPartition, int]:
        """Set start offsets of an empty group, and return the offsets that were set.

        Records from the new start offset on are delivered again, including
        acknowledged ones. An `OffsetSpec` is looked up first; a time after the last
        record's means the end. A group that does not exist is created.
        """
        validation.check_group_id(group_id)
        offsets = validation.check_by_partition("offsets", offsets)
        alter_offsets.check_offsets(offsets)
        return await alter_offsets.alter_share_group_offsets(
            self._executor(), group_id, offsets
        )

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str]
    ) -> Results[str, None]:
        """Delete an empty group's offsets of topics; reading them starts over."""
        validation.check_group_id(group_id)
        names = validation.check_topic_names(topics)
        return await alter_offsets.delete_share_group_offsets(
            self._executor(), group_id, names
        )

    async def read_state(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> Results[TopicPartition, SharePartitionState]:
        """Read the share coordinator's state of partitions, offset by offset.

        Does not disturb the group. Needs CLUSTER_ACTION on the cluster, like brokers.
        """
        return (await self.read_states({group_id: partitions}))[group_id]

    async def read_states(
        self, partitions: Mapping[str, Iterable[TopicPartition] | None]
    ) -> Mapping[str, Results[TopicPartition, SharePartitionState]]:
        """Read the states of partitions of many groups, as `read_state` of one.

        Topics and coordinators are looked up once, for all groups.
        """
        wanted = {
            validation.check_group_id(group_id): validation.check_partitions(keys)
            for group_id, keys in partitions.items()
        }
        return await state.read_states(self._executor(), wanted)

    async def read_state_summary(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> Results[TopicPartition, StateSummary]:
        """Read state summaries of partitions; needs CLUSTER_ACTION on the cluster."""
        validation.check_group_id(group_id)
        wanted = validation.check_partitions(partitions)
        return await state.read_state_summary(self._executor(), group_id, wanted)

    async def read_state_records(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> "Results[TopicPartition, RecordedState | None]":
        """Read states from the records of `__share_group_state`; None without records.

        Needs READ on that topic, not CLUSTER_ACTION, and also returns when the state
        was last written. Slower than `read_state`: it reads other groups' records too.

        Raises:
            ProtocolError: this client does not know the format of the records.
        """
        validation.check_group_id(group_id)
        from sharecons.admin.state_records import read_state_records

        wanted = validation.check_partitions(partitions)
        return await read_state_records(self._executor(), group_id, wanted)

    # Configs.

    async def describe_group_configs(
        self, *group_ids: str
    ) -> Results[str, Mapping[str, ConfigEntry]]:
        """Read the configs of groups by name, including defaults."""
        names = validation.check_group_ids(group_ids)
        return await describe_configs(self._executor(), ResourceKind.GROUP, names)

    async def describe_topic_configs(
        self, *topics: str
    ) -> Results[str, Mapping[str, ConfigEntry]]:
        """Read the configs of topics by name, including defaults."""
        names = validation.check_topic_names(topics)
        return await describe_configs(self._executor(), ResourceKind.TOPIC, names)

    async def alter_group_configs(
        self,
        group_id: str,
        changes: Mapping[str, str | int | bool | None],
        *,
        validate_only: bool = False,
    ) -> Result[None]:
        """Set configs of a group, all or none; None resets one to its default.

        Waits until the group's coordinator reports the new values.

        Raises:
            ConfigurationError: a name is unknown, or a value out of bounds (the KIP's,
                or the brokers' if they can be read); nothing was sent.
        """
        validation.check_group_id(group_id)
        validation.check_mapping("changes", changes)
        for name, value in changes.items():
            validation.check_string("config name", name)
            if isinstance(value, str):
                validation.check_string(name, value)
        return await configs.alter_group_configs(
            self._executor(), group_id, changes, validate_only
        )

    async def describe_broker_configs(
        self, *names: str, node_id: int | None = None
    ) -> Mapping[str, ConfigEntry]:
        """Read configs of a broker (None: any broker); no names means all.

        Raises:
            AuthorizationError, BrokerError: the broker rejects the request.
        """
        wanted = validation.check_names("names", names)
        return await cluster.describe_broker_configs(self._executor(), wanted, node_id)

    # Offsets of consumer groups, for migrations.

    async def list_consumer_group_offsets(
        self, *group_ids: str, partitions: Iterable[TopicPartition] | None = None
    ) -> Results[str, Results[TopicPartition, CommittedOffset | None]]:
        """List the committed offsets of consumer groups.

        None as `partitions` means all that have one; a partition that is named and has
        none has the value None.
        """
        names = validation.check_group_ids(group_ids)
        wanted = validation.check_partitions(partitions)
        return await consumer_offsets.list_consumer_group_offsets(
            self._executor(), names, wanted
        )

    async def alter_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
    ) -> Results[TopicPartition, None]:
        """Set committed offsets of a consumer group without members.

        A group that does not exist is created, as a classic one. A group with members
        has the error UNKNOWN_MEMBER_ID for each partition.
        """
        validation.check_group_id(group_id)
        offsets = validation.check_by_partition("offsets", offsets)
        committing = {
            key: offset
            if isinstance(offset, CommittedOffset)
            else CommittedOffset(offset=offset)
            for key, offset in offsets.items()
        }
        alter_offsets.check_committed(committing)
        return await consumer_offsets.alter_consumer_group_offsets(
            self._executor(), group_id, committing
        )

    # The cluster.

    async def describe_cluster(
        self, *, authorized_operations: bool = False
    ) -> ClusterDescription:
        """Describe the cluster: its id, brokers and controller."""
        return await cluster.describe_cluster(self._executor(), authorized_operations)

    async def describe_features(self, *, node_id: int | None = None) -> Features:
        """Describe features and API versions of a broker (None: any broker)."""
        return await cluster.describe_features(self._executor(), node_id)
