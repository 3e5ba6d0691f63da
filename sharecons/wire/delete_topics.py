"""DeleteTopics (20): by name; any broker passes it on to the controller."""

from collections.abc import Mapping
from datetime import timedelta

from sharecons.protocol.admin.requests import DeleteTopics, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["DELETE_TOPICS"]

Deleted = Mapping[str, Reply[None]]


def _write(request: DeleteTopics, version: int) -> bytes:
    v = schema("delete_topics", version)
    return write_entity(
        v.DeleteTopicsRequest(
            topics=tuple(
                v.request.DeleteTopicState(name=name, topic_id=None)
                for name in request.names
            ),
            timeout=timedelta(seconds=request.timeout),
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Deleted:
    kind = schema("delete_topics", version).DeleteTopicsResponse
    return {
        topic.name: Reply(int(topic.error_code), topic.error_message, None)
        for topic in read_entity(kind, frame, offset).responses
        if topic.name is not None
    }


DELETE_TOPICS: Api[DeleteTopics, Deleted] = Api(
    key=20, name="DeleteTopics", versions=range(6, 7), write=_write, read=_read
)
