"""The names of attributes, and the attributes of one record.

OpenTelemetry's semantic conventions for messaging, version 1.44, define the names,
except two of this package: the conventions have no names for share groups. Version 1.45
renamed five. The environment variable `OTEL_SEMCONV_STABILITY_OPT_IN` selects others:
`messaging` has the names of 1.45, `messaging/dup` the names of 1.44 and 1.45, and in
spans the names of version 1.24 as well.
"""

import enum
import os
import uuid
from collections.abc import Mapping
from typing import Any, Final, cast

from opentelemetry.util.types import AttributeValue

from sharecons._record import Record
from sharecons.errors import BrokerError
from sharecons.guard import full_type_name, guarded, is_a

__all__ = [
    "BATCH_MESSAGE_COUNT",
    "CLIENT_ID",
    "CLUSTER_ID",
    "DELIVERY_COUNT",
    "DESTINATION",
    "DISPOSITION",
    "ERROR_TYPE",
    "GROUP",
    "KEY",
    "OFFSET",
    "OPERATION_NAME",
    "OPERATION_TYPE",
    "PARTITION",
    "SYSTEM",
    "TOMBSTONE",
    "Attributes",
    "Conventions",
    "error_type_of",
    "key_text",
    "position_attributes",
    "record_attributes",
]

SCHEMAS: Final = "https://opentelemetry.io/schemas/"
OPT_IN: Final = "OTEL_SEMCONV_STABILITY_OPT_IN"

SYSTEM: Final = "messaging.system"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
GROUP: Final = "messaging.consumer.group.name"
CLIENT_ID: Final = "messaging.client.id"
OFFSET: Final = "messaging.kafka.offset"
KEY: Final = "messaging.kafka.message.key"
TOMBSTONE: Final = "messaging.kafka.message.tombstone"
CLUSTER_ID: Final = "messaging.kafka.cluster.id"
BATCH_MESSAGE_COUNT: Final = "messaging.batch.message_count"
ERROR_TYPE: Final = "error.type"
DELIVERY_COUNT: Final = "sharecons.delivery.count"
DISPOSITION: Final = "sharecons.disposition"

NEW_NAMES: Final[Mapping[str, str]] = {
    SYSTEM: "messaging.system.name",
    OFFSET: "kafka.offset",
    KEY: "kafka.message.key",
    TOMBSTONE: "kafka.message.tombstone",
    CLUSTER_ID: "kafka.cluster.id",
}
"""The names that version 1.45 has changed."""

OLD_NAMES: Final[Mapping[str, str]] = {
    CLIENT_ID: "messaging.client_id",
    GROUP: "messaging.kafka.consumer.group",
    OFFSET: "messaging.kafka.message.offset",
}
OLD_OPERATIONS: Final[Mapping[str, str]] = {"send": "publish", "receive": "receive"}
"""Version 1.24 has no other operations of a client of Kafka."""

Attributes = dict[str, AttributeValue]


def record_attributes(record: Record) -> Attributes:
    """Return the attributes of a delivered record."""
    attributes = position_attributes(record.partition, record.offset)
    attributes[DELIVERY_COUNT] = record.delivery_count
    if (key := key_text(record.key)) is not None:
        attributes[KEY] = key
    if record.value is None:
        attributes[TOMBSTONE] = True
    return attributes


def position_attributes(partition: int, offset: int) -> Attributes:
    """Return the attributes of a position in a topic; an offset of -1 is not known."""
    attributes: Attributes = {PARTITION: str(partition)}
    if offset >= 0:
        attributes[OFFSET] = offset
    return attributes


def key_text(key: Any) -> str | None:
    """Return a key as text; None if it is null, or has no canonical text."""

    def convert() -> str | None:  # a deserializer can return an object of any class
        if isinstance(key, bytes):
            return key.decode()
        return str(key) if isinstance(key, str | int | uuid.UUID) else None

    return guarded(convert, lambda _: None)


def error_type_of(error: BaseException) -> str:
    """Return Kafka's name of an error, or the name of an exception's class."""
    if is_a(error, BrokerError):
        return cast("BrokerError", error).name
    return full_type_name(error).removeprefix("builtins.")


class Conventions(enum.Enum):
    """The version of the conventions by which attributes are named."""

    V1_44 = "1.44.0"
    V1_45 = "1.45.0"
    ALL = "all"
    """The names of 1.44 and 1.45; in spans 1.24 as well."""

    @classmethod
    def selected(cls) -> "Conventions":
        """Return what the environment selects."""
        values = {each.strip() for each in os.environ.get(OPT_IN, "").split(",")}
        if "messaging/dup" in values:
            return cls.ALL
        return cls.V1_45 if "messaging" in values else cls.V1_44

    @property
    def schema_url(self) -> str:
        """The schema of spans and metrics."""
        version = Conventions.V1_44 if self is Conventions.V1_44 else Conventions.V1_45
        return f"{SCHEMAS}{version.value}"

    def of_span(self, attributes: Attributes) -> Attributes:
        """Return the attributes of a span by their names in this version."""
        named = self.of_metric(attributes)
        if self is Conventions.ALL:
            named |= _old_names(attributes)
        return named

    def of_metric(self, attributes: Attributes) -> Attributes:
        """Return the attributes of a metric by their names in this version."""
        if self is Conventions.V1_44:
            return attributes
        new = {NEW_NAMES.get(name, name): each for name, each in attributes.items()}
        return {**attributes, **new} if self is Conventions.ALL else new


def _old_names(attributes: Attributes) -> Attributes:
    """Return the values that have other names in version 1.24."""
    old = {
        OLD_NAMES[name]: value
        for name, value in attributes.items()
        if name in OLD_NAMES
    }
    if (
        operation := OLD_OPERATIONS.get(str(attributes.get(OPERATION_TYPE)))
    ) is not None:
        old["messaging.operation"] = operation
    if PARTITION in attributes:
        old["messaging.kafka.destination.partition"] = int(str(attributes[PARTITION]))
    return old
