"""CreateTopics (19): any broker passes it on to the controller."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sharecons.protocol.admin.models import CreatedTopic, NewTopic
from sharecons.protocol.admin.requests import CreateTopics, Reply
from sharecons.protocol.codes import Code
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import none_if_negative, schema
from sharecons.wire.topic_ids import topic_id_of

__all__ = ["CREATE_TOPICS"]

Created = Mapping[str, Reply[CreatedTopic]]


def _write(request: CreateTopics, version: int) -> bytes:
    v = schema("create_topics", version)
    return write_entity(
        v.CreateTopicsRequest(
            topics=tuple(_new_topic(v.request, topic) for topic in request.topics),
            timeout=timedelta(seconds=request.timeout),
            validate_only=request.validate_only,
        )
    )


def _new_topic(v: Any, topic: NewTopic) -> Any:
    return v.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.partitions is None else topic.partitions,
        replication_factor=(
            -1 if topic.replication_factor is None else topic.replication_factor
        ),
        assignments=(),
        configs=tuple(
            v.CreatableTopicConfig(name=name, value=_config_text(value))
            for name, value in topic.configs.items()
        ),
    )


def _config_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(frame: Frame, offset: int, version: int) -> Created:
    kind = schema("create_topics", version).CreateTopicsResponse
    return {
        topic.name: Reply(int(topic.error_code), topic.error_message, _created(topic))
        for topic in read_entity(kind, frame, offset).topics
    }


def _created(topic: Any) -> CreatedTopic | None:
    if topic.error_code != Code.NONE:
        return None
    return CreatedTopic(
        topic_id=topic_id_of(topic.topic_id),
        partitions=none_if_negative(int(topic.num_partitions)),
        replication_factor=none_if_negative(int(topic.replication_factor)),
    )


CREATE_TOPICS: Api[CreateTopics, Created] = Api(
    key=19, name="CreateTopics", versions=range(7, 8), write=_write, read=_read
)
