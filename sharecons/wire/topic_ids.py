"""Topic ids: UUIDs to kio, sixteen bytes to the machines."""

from uuid import UUID

from sharecons.protocol.messages import TopicId

__all__ = ["topic_id_of", "uuid_of"]

NOBODY = UUID(int=0)


def topic_id_of(uuid: UUID | None) -> TopicId:
    """Give kio's UUID as bytes; it reads the zero UUID as None."""
    return (uuid or NOBODY).bytes


def uuid_of(topic_id: TopicId) -> UUID:
    return UUID(bytes=topic_id)
