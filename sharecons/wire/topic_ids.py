"""Topic ids: UUIDs in kio, 16 bytes in `sharecons.protocol`."""

from uuid import UUID

from sharecons.protocol.partitions import TopicId

__all__ = ["topic_id_of", "uuid_of"]

ZERO_UUID = UUID(int=0)


def topic_id_of(uuid: UUID | None) -> TopicId:
    """Return a UUID of kio as bytes; None is the zero UUID."""
    return (uuid or ZERO_UUID).bytes


def uuid_of(topic_id: TopicId) -> UUID:
    return UUID(bytes=topic_id)
