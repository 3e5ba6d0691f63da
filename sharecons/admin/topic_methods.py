"""The methods of `ShareGroupAdmin` for topics and their logs."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sharecons._record import TopicPartition
from sharecons.admin import alter_offsets, new_topics, topics
from sharecons.admin.lifecycle import AdminLifecycle
from sharecons.config import validation
from sharecons.net.log_offsets import list_offsets
from sharecons.net.topics import describe_topics
from sharecons.protocol.admin.models import (
    CreatedTopic,
    LogOffset,
    NewTopic,
    OffsetSpec,
    Topic,
)
from sharecons.protocol.admin.results import Results

if TYPE_CHECKING:
    # Loaded on first use, so that commands that read no records start fast.
    from sharecons.protocol.log_reader.log_slice import LogSlice

__all__ = ["TopicMethods"]


class TopicMethods(AdminLifecycle):
    """Describe, create and delete topics, and read their logs."""

    async def describe_topics(
        self, *names: str, authorized_operations: bool = False
    ) -> Results[str, Topic]:
        """Describe topics: ids, partitions, leaders; no names means all topics."""
        wanted = validation.check_topic_names(names)
        return await describe_topics(
            self._executor(), wanted, authorized_operations=authorized_operations
        )

    async def create_topics(
        self, *new: NewTopic, validate_only: bool = False
    ) -> Results[str, CreatedTopic]:
        """Create topics, by name; return how many partitions and replicas each has.

        A topic that exists has a `BrokerError` with TOPIC_ALREADY_EXISTS. This can also
        be the result for a topic that this call has created, if a response was lost.
        Brokers learn of a new topic a moment later. Needs CREATE on the cluster or on
        the topics.

        Args:
            validate_only: check the topics as the brokers would, and create nothing.

        Raises:
            ConfigurationError: a topic is invalid or named twice; nothing was sent.
        """
        wanted = new_topics.check_new_topics(new)
        validation.check_bool("validate_only", validate_only)
        return await topics.create_topics(self._executor(), wanted, validate_only)

    async def delete_topics(self, *names: str) -> Results[str, None]:
        """Delete topics with all their records, and with the offsets of all groups.

        A topic that does not exist has a `BrokerError` with UNKNOWN_TOPIC_OR_PARTITION.
        This can also be the result for a topic that this call has deleted, if a
        response was lost. Needs DELETE on the topics.
        """
        wanted = validation.check_topic_names(names)
        return await topics.delete_topics(self._executor(), wanted)

    async def list_offsets(
        self,
        partitions: Iterable[TopicPartition] | Mapping[TopicPartition, OffsetSpec],
        spec: OffsetSpec = OffsetSpec.LATEST,
        *,
        read_committed: bool = False,
    ) -> Results[TopicPartition, LogOffset]:
        """Look up offsets in partitions' logs; a mapping gives each its own spec."""
        wanted = validation.check_partitions(partitions) or ()
        specs = dict.fromkeys(wanted, spec)
        if isinstance(partitions, Mapping):
            specs = validation.check_by_partition("partitions", partitions)
        alter_offsets.check_specs(specs)
        return await list_offsets(self._executor(), specs, read_committed)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int]
    ) -> Results[TopicPartition, int]:
        """Delete the records before an offset of each partition, for all groups.

        Returns the offsets at which the logs start afterwards. An offset beyond the
        end of the log has a `BrokerError` with OFFSET_OUT_OF_RANGE, a topic without
        cleanup.policy=delete one with POLICY_VIOLATION. Deleting again up to the same
        offset changes nothing. After a timeout, a lost connection or a cancellation,
        the records can be deleted or not.

        Raises:
            ConfigurationError: an offset is negative or not an integer; nothing was
                sent.
        """
        offsets = validation.check_by_partition("offsets", offsets)
        alter_offsets.check_offsets(offsets, allow_specs=False)
        return await topics.delete_records(self._executor(), offsets)

    async def read_log(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        max_bytes: int = 1 << 20,
        read_committed: bool = False,
    ) -> "Results[TopicPartition, LogSlice]":
        """Read records, starting at these offsets, without consuming them.

        Sends one request to each leader, which returns immediately, with up to about
        `max_bytes` per partition. Continue from each slice's `next_offset`. Includes
        records of open and aborted transactions, unless `read_committed` is True.
        """
        from sharecons.admin.read_log import read_log

        offsets = validation.check_by_partition("offsets", offsets)
        alter_offsets.check_offsets(offsets, allow_specs=False)
        validation.check_count("max_bytes", max_bytes, 1)
        validation.check_bool("read_committed", read_committed)
        return await read_log(self._executor(), offsets, max_bytes, read_committed)
