"""The settings of topics: all of Kafka 4.3, and one of 4.4 (KIP-1191).

`max.message.bytes`, `message.timestamp.*` and `cleanup.policy` decide which batches are
accepted; the others are only stored and shown: nothing is deleted or compacted.
"""

from collections.abc import Mapping
from typing import Final

from sharecons.testing.broker.settings.setting import Kind, Setting

__all__ = ["TOPICS"]

INFINITE: Final = str(2**63 - 1)
REPLICAS_PATTERN: Final = r"\*|[0-9]+:[0-9]+"
REPLICAS_ERROR: Final = (
    "{name} must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"

_ALL: Final = (
    Setting(
        name="cleanup.policy",
        kind=Kind.LIST,
        default="delete",
        choices=("compact", "delete"),
        parents=("log.cleanup.policy",),
        doc="How old segments are cleaned: deleted, compacted by key, or both.",
    ),
    Setting(
        name="compression.gzip.level",
        kind=Kind.INT,
        default="-1",
        pattern="-1|[1-9]",
        pattern_error="Value must be between 1 and 9 or equal to -1",
        parents=("compression.gzip.level",),
        doc="The gzip level, where the broker compresses.",
    ),
    Setting(
        name="compression.lz4.level",
        kind=Kind.INT,
        default="9",
        min_value=1,
        max_value=17,
        parents=("compression.lz4.level",),
        doc="The lz4 level, where the broker compresses.",
    ),
    Setting(
        name="compression.zstd.level",
        kind=Kind.INT,
        default="3",
        min_value=-131072,
        max_value=22,
        parents=("compression.zstd.level",),
        doc="The zstd level, where the broker compresses.",
    ),
    Setting(
        name="compression.type",
        kind=Kind.STRING,
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        parents=("compression.type",),
        doc="How the log is compressed; by default as the producer did it.",
    ),
    Setting(
        name="delete.retention.ms",
        kind=Kind.LONG,
        default="86400000",
        min_value=0,
        parents=("log.cleaner.delete.retention.ms",),
        doc="How long a compacted topic keeps the markers of deleted records.",
    ),
    Setting(
        name="errors.deadletterqueue.group.enable",
        kind=Kind.BOOLEAN,
        default="false",
        is_later=True,
        doc="Whether share groups can write their dead letters to the topic.",
    ),
    Setting(
        name="file.delete.delay.ms",
        kind=Kind.LONG,
        default="60000",
        min_value=0,
        parents=("log.segment.delete.delay.ms",),
        doc="How long an unused file stays on disk.",
    ),
    Setting(
        name="flush.messages",
        kind=Kind.LONG,
        default=INFINITE,
        min_value=1,
        parents=("log.flush.interval.messages",),
        doc="Number of records after which the log is flushed to disk.",
    ),
    Setting(
        name="flush.ms",
        kind=Kind.LONG,
        default=INFINITE,
        min_value=0,
        parents=("log.flush.interval.ms",),
        doc="Time after which the log is flushed to disk.",
    ),
    Setting(
        name=FOLLOWERS,
        kind=Kind.LIST,
        default="",
        pattern=REPLICAS_PATTERN,
        pattern_error=REPLICAS_ERROR.format(name=FOLLOWERS),
        doc="The replicas whose replication is throttled at the follower.",
    ),
    Setting(
        name=LEADERS,
        kind=Kind.LIST,
        default="",
        pattern=REPLICAS_PATTERN,
        pattern_error=REPLICAS_ERROR.format(name=LEADERS),
        doc="The replicas whose replication is throttled at the leader.",
    ),
    Setting(
        name="index.interval.bytes",
        kind=Kind.INT,
        default="4096",
        min_value=0,
        parents=("log.index.interval.bytes",),
        doc="Bytes of the log between two entries of the offset index.",
    ),
    Setting(
        name="local.retention.bytes",
        kind=Kind.LONG,
        default="-2",
        min_value=-2,
        parents=("log.local.retention.bytes",),
        doc="Bytes kept on the broker that are in remote storage as well.",
    ),
    Setting(
        name="local.retention.ms",
        kind=Kind.LONG,
        default="-2",
        min_value=-2,
        parents=("log.local.retention.ms",),
        doc="How long the broker keeps records that are in remote storage as well.",
    ),
    Setting(
        name="max.compaction.lag.ms",
        kind=Kind.LONG,
        default=INFINITE,
        min_value=1,
        parents=("log.cleaner.max.compaction.lag.ms",),
        doc="Maximum time that a record stays uncompacted.",
    ),
    Setting(
        name="max.message.bytes",
        kind=Kind.INT,
        default="1048588",
        min_value=0,
        parents=("message.max.bytes",),
        doc="Maximum size of a batch.",
    ),
    Setting(
        name="message.timestamp.after.max.ms",
        kind=Kind.LONG,
        default="3600000",
        min_value=0,
        parents=("log.message.timestamp.after.max.ms",),
        doc="How far ahead of the broker's clock a record's timestamp can be.",
    ),
    Setting(
        name="message.timestamp.before.max.ms",
        kind=Kind.LONG,
        default=INFINITE,
        min_value=0,
        parents=("log.message.timestamp.before.max.ms",),
        doc="How far behind the broker's clock a record's timestamp can be.",
    ),
    Setting(
        name="message.timestamp.type",
        kind=Kind.STRING,
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        parents=("log.message.timestamp.type",),
        doc="Whether timestamps are the producer's or the broker's.",
    ),
    Setting(
        name="min.cleanable.dirty.ratio",
        kind=Kind.DOUBLE,
        default="0.5",
        min_value=0,
        max_value=1,
        parents=("log.cleaner.min.cleanable.ratio",),
        doc="The uncompacted part of a log from which it is compacted.",
    ),
    Setting(
        name="min.compaction.lag.ms",
        kind=Kind.LONG,
        default="0",
        min_value=0,
        parents=("log.cleaner.min.compaction.lag.ms",),
        doc="Minimum time that a record stays uncompacted.",
    ),
    Setting(
        name="min.insync.replicas",
        kind=Kind.INT,
        default="1",
        min_value=1,
        parents=("min.insync.replicas",),
        doc="Number of in-sync replicas required for acks=all.",
    ),
    Setting(
        name="preallocate",
        kind=Kind.BOOLEAN,
        default="false",
        parents=("log.preallocate",),
        doc="Whether a segment's file is created at its full size.",
    ),
    Setting(
        name="remote.log.copy.disable",
        kind=Kind.BOOLEAN,
        default="false",
        doc="Whether copying to remote storage has ended.",
    ),
    Setting(
        name="remote.log.delete.on.disable",
        kind=Kind.BOOLEAN,
        default="false",
        doc="Whether remote data are deleted when remote storage is disabled.",
    ),
    Setting(
        name="remote.storage.enable",
        kind=Kind.BOOLEAN,
        default="false",
        doc="Whether old segments are moved to remote storage.",
    ),
    Setting(
        name="retention.bytes",
        kind=Kind.LONG,
        default="-1",
        parents=("log.retention.bytes",),
        doc="Size of a partition from which old segments are deleted; -1: no limit.",
    ),
    Setting(
        name="retention.ms",
        kind=Kind.LONG,
        default="604800000",
        min_value=-1,
        parents=("log.retention.ms",),
        doc="How long records are kept; -1: for ever.",
    ),
    Setting(
        name="segment.bytes",
        kind=Kind.INT,
        default="1073741824",
        min_value=1048576,
        parents=("log.segment.bytes",),
        doc="Maximum size of a segment's file.",
    ),
    Setting(
        name="segment.index.bytes",
        kind=Kind.INT,
        default="10485760",
        min_value=4,
        parents=("log.index.size.max.bytes",),
        doc="Maximum size of a segment's index.",
    ),
    Setting(
        name="segment.jitter.ms",
        kind=Kind.LONG,
        default="0",
        min_value=0,
        parents=("log.roll.jitter.ms",),
        doc="Maximum random time that is subtracted from segment.ms.",
    ),
    Setting(
        name="segment.ms",
        kind=Kind.LONG,
        default="604800000",
        min_value=1,
        parents=("log.roll.ms",),
        doc="Maximum age of a segment before the next one begins.",
    ),
    Setting(
        name="unclean.leader.election.enable",
        kind=Kind.BOOLEAN,
        default="false",
        parents=("unclean.leader.election.enable",),
        doc="Whether a replica that is not in sync can become the leader.",
    ),
)

TOPICS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _ALL}
