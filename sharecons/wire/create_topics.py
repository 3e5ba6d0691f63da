"""CreateTopics (19): creates one topic; any broker passes it on to the controller."""

from datetime import timedelta

from sharecons.errors import ProtocolError
from sharecons.protocol.admin.requests import CreateTopic, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["CREATE_TOPIC"]


def _write(request: CreateTopic, version: int) -> bytes:
    v = schema("create_topics", version)
    topic = v.request.CreatableTopic(
        name=request.name,
        num_partitions=request.partitions,
        replication_factor=-1,
        assignments=(),
        configs=tuple(
            v.request.CreatableTopicConfig(name=name, value=value)
            for name, value in request.configs.items()
        ),
    )
    return write_entity(
        v.CreateTopicsRequest(
            topics=(topic,), timeout=timedelta(seconds=request.timeout)
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Reply[None]:
    kind = schema("create_topics", version).CreateTopicsResponse
    topics = read_entity(kind, frame, offset).topics
    if len(topics) != 1:
        raise ProtocolError(
            f"invalid CreateTopics response: it contains {len(topics)} topics "
            "instead of 1"
        )
    return Reply(int(topics[0].error_code), topics[0].error_message, None)


CREATE_TOPIC: Api[CreateTopic, Reply[None]] = Api(
    key=19, name="CreateTopics", versions=range(7, 8), write=_write, read=_read
)
