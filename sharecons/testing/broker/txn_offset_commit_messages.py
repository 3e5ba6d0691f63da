"""The messages of TxnOffsetCommit 6: topics by id (KIP-1319, in Kafka 4.4).

kio has the versions up to 5, from which these classes are made.
"""

import uuid
from dataclasses import Field, field, fields, make_dataclass
from types import GenericAlias
from typing import Any, Final

from kio.schema.txn_offset_commit.v5 import request, response
from kio.static.primitive import i16

__all__ = ["TxnOffsetCommitRequest", "TxnOffsetCommitResponse"]

KEPT: Final = ("__type__", "__flexible__", "__api_key__", "__header_schema__")
"""The attributes of classes that are the same as in version 5."""


def _later(kind: Any, **parts: Any) -> Any:
    """Return the class of version 6; `parts` has the types of changed fields."""
    attributes = {name: getattr(kind, name) for name in KEPT}
    attributes |= {"__version__": i16(6), "__module__": __name__}
    definitions = [_later_field(each, parts) for each in fields(kind)]
    return make_dataclass(
        kind.__name__,
        definitions,
        namespace=attributes,
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _array(part: Any) -> Any:
    return GenericAlias(tuple, (part, ...))


def _later_field(old: Field[Any], parts: dict[str, Any]) -> tuple[str, Any, Any]:
    if old.name == "name":
        return "topic_id", uuid.UUID | None, field(metadata={"kafka_type": "uuid"})
    copy: Any = field(default=old.default, metadata=old.metadata)
    return old.name, parts.get(old.name, old.type), copy


# The codec finds the parts of a message by their names in this module.
TxnOffsetCommitRequestPartition = _later(request.TxnOffsetCommitRequestPartition)
TxnOffsetCommitRequestTopic = _later(
    request.TxnOffsetCommitRequestTopic,
    partitions=_array(TxnOffsetCommitRequestPartition),
)
TxnOffsetCommitRequest = _later(
    request.TxnOffsetCommitRequest, topics=_array(TxnOffsetCommitRequestTopic)
)
TxnOffsetCommitResponsePartition = _later(response.TxnOffsetCommitResponsePartition)
TxnOffsetCommitResponseTopic = _later(
    response.TxnOffsetCommitResponseTopic,
    partitions=_array(TxnOffsetCommitResponsePartition),
)
TxnOffsetCommitResponse = _later(
    response.TxnOffsetCommitResponse, topics=_array(TxnOffsetCommitResponseTopic)
)
