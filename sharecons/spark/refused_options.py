"""Options of Spark's Kafka source, and of Kafka's consumers, that the source refuses.

Each has a reason that says what to do instead. No option is ignored: one without an
effect would hide a mistake.
"""

from collections.abc import Mapping
from typing import Final

from sharecons.properties import consumer_properties

__all__ = ["reason_against"]

_OFFSETS: Final = (
    "the brokers decide what a share group delivers; kafka.share.auto.offset.reset "
    "sets where a new group starts (earliest, latest, by_duration:PT1H)"
)
_OF_GROUP: Final = "it is a config of the group: run `sharecons groups configure`"
_NO_MEMBERS: Final = (
    "share groups do not have it: the group's coordinator assigns the partitions; "
    "remove the option"
)
_CLASSES: Final = "the source is not written in Java and loads no classes of it; "

_SPARK: Final[Mapping[str, str]] = {
    "assign": "the group's coordinator assigns the partitions; name the topics in "
    "subscribe, and use Spark's own Kafka source to read chosen partitions",
    "startingOffsets": _OFFSETS,
    "startingOffsetsByTimestamp": _OFFSETS,
    "startingOffsetsByTimestampStrategy": _OFFSETS,
    "startingTimestamp": _OFFSETS,
    "endingOffsets": _OFFSETS,
    "endingOffsetsByTimestamp": _OFFSETS,
    "endingTimestamp": _OFFSETS,
    "checkpointLocation": "it belongs to the query: set it on writeStream",
    "group.id": "set the share group with kafka.share.group.id",
    "path": "load() takes no path; name the topics in subscribe",
    "topic": "name the topics in subscribe",
    "topics": "name the topics in subscribe",
    "groupIdPrefix": "set the full name of the share group with kafka.share.group.id",
    "kafkaConsumer.pollTimeoutMs": "a task fails after two minutes without progress; "
    "kafka.request.timeout.ms limits each request",
    "fetchOffset.numRetries": "the source retries until its brokers respond; remove "
    "the option",
    "fetchOffset.retryIntervalMs": "the source has intervals of its own; remove the "
    "option",
}

_KAFKA: Final[Mapping[str, str]] = {
    "auto.offset.reset": _OFFSETS,
    "enable.auto.commit": "the source accepts records once they are in its ledger; "
    "there is nothing to commit; remove the option",
    "group.id": "it names a consumer group; set the share group with "
    "kafka.share.group.id",
    "group.instance.id": "the ledger keeps the member's id; remove the option",
    "interceptor.classes": f"{_CLASSES}process the records in the query",
    "isolation.level": "the group's own share.isolation.level decides which records "
    "are delivered; set it on the group",
    "key.deserializer": "the column key is binary; cast it in the query",
    "value.deserializer": "the column value is binary; cast it in the query",
    "max.partition.fetch.bytes": "a share fetch has one limit for all partitions; set "
    "kafka.fetch.max.bytes",
    "max.poll.interval.ms": "the source never stops polling; remove the option",
    "metric.reporters": f"{_CLASSES}the query's progress has the source's counts",
    "share.acknowledgement.mode": "the source accepts records once they are in its "
    "ledger; a query can reject records or send dead letters (docs/spark-running.md)",
    "share.acquire.mode": "the source acquires whole fetches, and limits batches by "
    "maxOffsetsPerTrigger",
    "heartbeat.interval.ms": "share.heartbeat.interval.ms, a config of the group, "
    "replaces it",
    "session.timeout.ms": "share.session.timeout.ms, a config of the group, replaces "
    "it",
    "group.protocol": _NO_MEMBERS,
    "group.remote.assignor": _NO_MEMBERS,
    "partition.assignment.strategy": _NO_MEMBERS,
}

_NO_EFFECT: Final = "the source has no such setting; remove the option"

_REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    name.lower(): (name, reason)
    for names in (
        {f"kafka.{name}": _NO_EFFECT for name in consumer_properties.WITHOUT_EFFECT},
        {
            f"kafka.{name}": _OF_GROUP
            for name in consumer_properties.REFUSED
            if name.startswith("share.")
        },
        {f"kafka.{name}": reason for name, reason in _KAFKA.items()},
        _SPARK,
    )
    for name, reason in names.items()
}


def reason_against(key: str) -> tuple[str, str] | None:
    """Return the name of an option and the reason to refuse it; None if there is none.

    Args:
        key: the option's name in lower case.
    """
    return _REFUSED.get(key)
