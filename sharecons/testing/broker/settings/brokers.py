"""The settings of brokers that have an effect here or that clients can request.

One row each: name, type, default ("-" is none, EMPTY is ""), for groups the lowest and
the highest value, and whether it can be changed while the broker runs. Settings of
disks, controllers, TLS, SASL and remote storage are left out.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sharecons.testing.broker.settings.setting import Kind, Setting
from sharecons.testing.broker.settings.topics import TOPICS

__all__ = ["BROKERS", "TEST_DEFAULTS", "replica_settings"]

TEST_DEFAULTS: Final[Mapping[str, str]] = {
    # Tests should not wait for more members.
    "group.initial.rebalance.delay.ms": "0",
    # Lower bounds for groups; the defaults of groups stay Kafka's.
    "group.share.min.session.timeout.ms": "1",
    "group.share.min.heartbeat.interval.ms": "1",
    "group.share.min.record.lock.duration.ms": "1000",
}
"""The static settings of these brokers, as in a properties file."""


def replica_settings(brokers: int) -> dict[str, str]:
    """Return settings with which that number of brokers can create internal topics."""
    replicas, in_sync = str(min(3, brokers)), str(min(2, brokers))
    return {
        "offsets.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.replication.factor": replicas,
    }


TABLE: Final = """
authorizer.class.name STRING EMPTY
auto.create.topics.enable BOOLEAN true
auto.leader.rebalance.enable BOOLEAN true
compression.gzip.level INT -1 dynamic
compression.lz4.level INT 9 dynamic
compression.type STRING producer dynamic
compression.zstd.level INT 3 dynamic
connections.max.idle.ms LONG 600000
controlled.shutdown.enable BOOLEAN true
default.replication.factor INT 1
delete.topic.enable BOOLEAN true
errors.deadletterqueue.auto.create.topics.enable BOOLEAN false dynamic
errors.deadletterqueue.topic.name.prefix STRING dlq. dynamic
fetch.max.bytes INT 57671680
group.consumer.assignment.interval.ms INT 1000 0.. dynamic
group.consumer.assignors LIST uniform,range
group.consumer.heartbeat.interval.ms INT 5000 1..
group.consumer.max.assignment.interval.ms INT 15000 0..
group.consumer.max.heartbeat.interval.ms INT 15000 1..
group.consumer.max.session.timeout.ms INT 60000 1..
group.consumer.max.size INT 2147483647 1..
group.consumer.migration.policy STRING bidirectional
group.consumer.min.assignment.interval.ms INT 0 0..
group.consumer.min.heartbeat.interval.ms INT 5000 1..
group.consumer.min.session.timeout.ms INT 45000 1..
group.consumer.session.timeout.ms INT 45000 1..
group.initial.rebalance.delay.ms INT 3000
group.max.session.timeout.ms INT 1800000
group.max.size INT 2147483647 1..
group.min.session.timeout.ms INT 6000
group.share.assignment.interval.ms INT 1000 0.. dynamic
group.share.assignors LIST simple
group.share.delivery.count.limit INT 5 2..10
group.share.heartbeat.interval.ms INT 5000 1..
group.share.max.assignment.interval.ms INT 15000 0..
group.share.max.delivery.count.limit INT 10 5..25
group.share.max.heartbeat.interval.ms INT 15000 1..
group.share.max.partition.max.record.locks INT 4000 2000..10000
group.share.max.record.lock.duration.ms INT 60000 30000..3600000
group.share.max.session.timeout.ms INT 60000 1..
group.share.max.share.sessions INT 2000 1..
group.share.max.size INT 200 1..1000
group.share.min.assignment.interval.ms INT 0 0..
group.share.min.delivery.count.limit INT 2 2..5
group.share.min.heartbeat.interval.ms INT 5000 1..
group.share.min.partition.max.record.locks INT 100 100..2000
group.share.min.record.lock.duration.ms INT 15000 1000..30000
group.share.min.session.timeout.ms INT 45000 1..
group.share.partition.max.record.locks INT 2000 100..10000
group.share.record.lock.duration.ms INT 30000 1000..3600000
group.share.session.timeout.ms INT 45000 1..
group.streams.assignment.interval.ms INT 1000 0.. dynamic
group.streams.heartbeat.interval.ms INT 5000 1..
group.streams.initial.rebalance.delay.ms INT 3000 0..
group.streams.max.assignment.interval.ms INT 15000 0..
group.streams.max.heartbeat.interval.ms INT 15000 1..
group.streams.max.session.timeout.ms INT 60000 1..
group.streams.max.size INT 2147483647 1..
group.streams.max.standby.replicas INT 2 0..
group.streams.min.assignment.interval.ms INT 0 0..
group.streams.min.heartbeat.interval.ms INT 5000 1..
group.streams.min.session.timeout.ms INT 45000 1..
group.streams.num.standby.replicas INT 0 0..
group.streams.session.timeout.ms INT 45000 1..
log.cleaner.delete.retention.ms LONG 86400000 dynamic
log.cleaner.enable BOOLEAN true
log.cleaner.max.compaction.lag.ms LONG 9223372036854775807 dynamic
log.cleaner.min.cleanable.ratio DOUBLE 0.5 dynamic
log.cleaner.min.compaction.lag.ms LONG 0 dynamic
log.cleanup.policy LIST delete dynamic
log.flush.interval.messages LONG 9223372036854775807 dynamic
log.flush.interval.ms LONG - dynamic
log.index.interval.bytes INT 4096 dynamic
log.index.size.max.bytes INT 10485760 dynamic
log.local.retention.bytes LONG -2 dynamic
log.local.retention.ms LONG -2 dynamic
log.message.timestamp.after.max.ms LONG 3600000 dynamic
log.message.timestamp.before.max.ms LONG 9223372036854775807 dynamic
log.message.timestamp.type STRING CreateTime dynamic
log.preallocate BOOLEAN false dynamic
log.retention.bytes LONG -1 dynamic
log.retention.check.interval.ms LONG 300000
log.retention.hours INT 168
log.retention.minutes INT -
log.retention.ms LONG - dynamic
log.roll.hours INT 168
log.roll.jitter.hours INT 0
log.roll.jitter.ms LONG - dynamic
log.roll.ms LONG - dynamic
log.segment.bytes INT 1073741824 dynamic
log.segment.delete.delay.ms LONG 60000 dynamic
max.connection.creation.rate INT 2147483647 dynamic
max.connections INT 2147483647 dynamic
max.connections.per.ip INT 2147483647 dynamic
max.connections.per.ip.overrides STRING EMPTY dynamic
max.incremental.fetch.session.cache.slots INT 1000
message.max.bytes INT 1048588 dynamic
min.insync.replicas INT 1 dynamic
num.partitions INT 1
offset.metadata.max.bytes INT 4096
offsets.commit.timeout.ms INT 5000
offsets.retention.check.interval.ms LONG 600000
offsets.retention.minutes INT 10080
offsets.topic.num.partitions INT 50
offsets.topic.replication.factor SHORT 3
producer.id.expiration.ms INT 86400000 dynamic
request.timeout.ms INT 30000
security.inter.broker.protocol STRING PLAINTEXT
share.coordinator.state.topic.min.isr SHORT 2 1..
share.coordinator.state.topic.num.partitions INT 50 1..
share.coordinator.state.topic.replication.factor SHORT 3 1..
socket.listen.backlog.size INT 50
socket.receive.buffer.bytes INT 102400
socket.request.max.bytes INT 104857600
socket.send.buffer.bytes INT 102400
telemetry.max.bytes INT 1048576
transaction.max.timeout.ms INT 900000
transaction.state.log.min.isr INT 2
transaction.state.log.num.partitions INT 50
transaction.state.log.replication.factor SHORT 3
transactional.id.expiration.ms INT 604800000
unclean.leader.election.enable BOOLEAN false dynamic
"""

LATER_PREFIX: Final = "errors.deadletterqueue."  # KIP-1191, in 4.4
MIN_VALUES: Final = {"max.connections": 0, "num.partitions": 1}
PER_BROKER: Final = (
    ("advertised.listeners", Kind.LIST, None, False),
    ("broker.id", Kind.INT, "-1", False),
    ("broker.rack", Kind.STRING, None, False),
    ("listeners", Kind.LIST, "PLAINTEXT://:9092", True),
    ("node.id", Kind.INT, None, False),
)
"""Settings that differ between brokers."""


def _parse_table() -> Mapping[str, Setting]:
    found = {
        name: Setting(name=name, kind=kind, default=default, dynamic=dynamic)
        for name, kind, default, dynamic in PER_BROKER
    }
    topic_settings = {
        parent: topic for topic in TOPICS.values() for parent in topic.parents
    }
    for row in TABLE.split("\n"):
        if row:
            setting = _parse_row(row.split(" "), topic_settings)
            found[setting.name] = setting
    return dict(sorted(found.items()))


def _parse_row(row: Sequence[str], topic_settings: Mapping[str, Setting]) -> Setting:
    """Return the setting of a row; a topic's default has the topic's value range."""
    name, kind, default, *rest = row
    dynamic = "dynamic" in rest
    lowest, _, highest = rest[0].partition("..") if rest else ("", "", "")
    minimum = int(lowest) if lowest.lstrip("-").isdigit() else MIN_VALUES.get(name)
    maximum = int(highest) if highest else None
    topic_setting = topic_settings.get(name)
    group, _, interval = name.partition(".assignment.")
    bounds = f"{group}.{{}}.assignment.{interval}" if interval and dynamic else ""
    return Setting(
        name=name,
        kind=Kind[kind],
        default={"-": None, "EMPTY": ""}.get(default, default),
        min_value=topic_setting.min_value if topic_setting else minimum,
        max_value=topic_setting.max_value if topic_setting else maximum,
        choices=topic_setting.choices if topic_setting else (),
        min_setting=bounds.format("min"),
        max_setting=bounds.format("max"),
        dynamic=dynamic,
        is_later=name.startswith(LATER_PREFIX),
    )


BROKERS: Final[Mapping[str, Setting]] = _parse_table()
