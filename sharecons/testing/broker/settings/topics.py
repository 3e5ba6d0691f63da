"""The settings of topics: all of Kafka 4.3, and one of 4.4 (KIP-1191).

Two lines each: name, type, default (EMPTY is ""), valid values, and the setting of
brokers that it falls back to ("-" is none, "=" is the name); then its documentation.

`max.message.bytes`, `message.timestamp.*` and `cleanup.policy` decide which batches are
accepted; the others are only stored and shown: nothing is deleted or compacted.
"""

from collections.abc import Mapping
from typing import Final

from sharecons.testing.broker.settings.setting import Kind, Setting

__all__ = ["TOPICS"]

TABLE: Final = """
cleanup.policy LIST delete compact|delete log.=
    How old segments are cleaned: deleted, compacted by key, or both.
compression.gzip.level INT -1 - =
    The gzip level, where the broker compresses.
compression.lz4.level INT 9 1..17 =
    The lz4 level, where the broker compresses.
compression.zstd.level INT 3 -131072..22 =
    The zstd level, where the broker compresses.
compression.type STRING producer uncompressed|zstd|lz4|snappy|gzip|producer =
    How the log is compressed; by default as the producer did it.
delete.retention.ms LONG 86400000 0.. log.cleaner.delete.retention.ms
    How long a compacted topic keeps the markers of deleted records.
errors.deadletterqueue.group.enable BOOLEAN false - -
    Whether share groups can write their dead letters to the topic.
file.delete.delay.ms LONG 60000 0.. log.segment.delete.delay.ms
    How long an unused file stays on disk.
flush.messages LONG 9223372036854775807 1.. log.flush.interval.messages
    Number of records after which the log is flushed to disk.
flush.ms LONG 9223372036854775807 0.. log.flush.interval.ms
    Time after which the log is flushed to disk.
follower.replication.throttled.replicas LIST EMPTY - -
    The replicas whose replication is throttled at the follower.
leader.replication.throttled.replicas LIST EMPTY - -
    The replicas whose replication is throttled at the leader.
index.interval.bytes INT 4096 0.. log.=
    Bytes of the log between two entries of the offset index.
local.retention.bytes LONG -2 -2.. log.=
    Bytes kept on the broker that are in remote storage as well.
local.retention.ms LONG -2 -2.. log.=
    How long the broker keeps records that are in remote storage as well.
max.compaction.lag.ms LONG 9223372036854775807 1.. log.cleaner.max.compaction.lag.ms
    Maximum time that a record stays uncompacted.
max.message.bytes INT 1048588 0.. message.max.bytes
    Maximum size of a batch.
message.timestamp.after.max.ms LONG 3600000 0.. log.=
    How far ahead of the broker's clock a record's timestamp can be.
message.timestamp.before.max.ms LONG 9223372036854775807 0.. log.=
    How far behind the broker's clock a record's timestamp can be.
message.timestamp.type STRING CreateTime CreateTime|LogAppendTime log.=
    Whether timestamps are the producer's or the broker's.
min.cleanable.dirty.ratio DOUBLE 0.5 0..1 log.cleaner.min.cleanable.ratio
    The uncompacted part of a log from which it is compacted.
min.compaction.lag.ms LONG 0 0.. log.cleaner.min.compaction.lag.ms
    Minimum time that a record stays uncompacted.
min.insync.replicas INT 1 1.. =
    Number of in-sync replicas required for acks=all.
preallocate BOOLEAN false - log.=
    Whether a segment's file is created at its full size.
remote.log.copy.disable BOOLEAN false - -
    Whether copying to remote storage has ended.
remote.log.delete.on.disable BOOLEAN false - -
    Whether remote data are deleted when remote storage is disabled.
remote.storage.enable BOOLEAN false - -
    Whether old segments are moved to remote storage.
retention.bytes LONG -1 - log.=
    Size of a partition from which old segments are deleted; -1: no limit.
retention.ms LONG 604800000 -1.. log.=
    How long records are kept; -1: for ever.
segment.bytes INT 1073741824 1048576.. log.=
    Maximum size of a segment's file.
segment.index.bytes INT 10485760 4.. log.index.size.max.bytes
    Maximum size of a segment's index.
segment.jitter.ms LONG 0 0.. log.roll.jitter.ms
    Maximum random time that is subtracted from segment.ms.
segment.ms LONG 604800000 1.. log.roll.ms
    Maximum age of a segment before the next one begins.
unclean.leader.election.enable BOOLEAN false - =
    Whether a replica that is not in sync can become the leader.
"""

GZIP_LEVEL: Final = ("-1|[1-9]", "Value must be between 1 and 9 or equal to -1")
REPLICAS: Final = (
    r"\*|[0-9]+:[0-9]+",
    "{name} must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
)
PATTERNS: Final = {
    "compression.gzip.level": GZIP_LEVEL,
    "follower.replication.throttled.replicas": REPLICAS,
    "leader.replication.throttled.replicas": REPLICAS,
}
LATER_PREFIX: Final = "errors.deadletterqueue."


def _parse_row(row: str, doc: str) -> Setting:
    name, kind, default, values, parent = row.split(" ")
    lowest, is_range, highest = values.partition("..")
    pattern, pattern_error = PATTERNS.get(name, ("", ""))
    return Setting(
        name=name,
        kind=Kind[kind],
        default="" if default == "EMPTY" else default,
        min_value=int(lowest) if is_range else None,
        max_value=int(highest) if highest else None,
        choices=() if is_range or values == "-" else tuple(values.split("|")),
        pattern=pattern,
        pattern_error=pattern_error.replace("{name}", name),
        parents=() if parent == "-" else (parent.replace("=", name),),
        is_later=name.startswith(LATER_PREFIX),
        doc=doc.strip(),
    )


_LINES: Final = TABLE.strip().split("\n")
_ALL: Final = map(_parse_row, _LINES[::2], _LINES[1::2])

TOPICS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _ALL}
