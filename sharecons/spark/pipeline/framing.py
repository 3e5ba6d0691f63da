"""The bytes that Confluent's serializers write before a value: 0, and the schema's id.

The pipeline does not use a schema registry. It decodes all values with the user's
schema, and the user can list the ids of that schema.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sharecons.spark.pipeline.errors import InvalidValueError

__all__ = ["FRAME_SIZE", "ConfluentFraming", "is_framed"]

FRAME_SIZE: Final = 5


def is_framed(value: bytes) -> bool:
    """Return whether a value might be framed: it begins with 0, and is long enough."""
    return len(value) > FRAME_SIZE and value[0] == 0


@dataclass(frozen=True, slots=True)
class ConfluentFraming:
    """Removes Confluent's framing.

    Attributes:
        schema_ids: the ids to accept; empty for all.
    """

    schema_ids: Collection[int] = ()

    def remove(self, value: bytes) -> bytes:
        """Return the bytes after the framing.

        Raises:
            InvalidValueError: there is no framing, or it has the id of another schema.
        """
        if not is_framed(value):
            raise InvalidValueError("no Confluent framing")
        schema_id = int.from_bytes(value[1:FRAME_SIZE], "big")
        if self.schema_ids and schema_id not in self.schema_ids:
            raise InvalidValueError(f"the schema id {schema_id} is not expected")
        return value[FRAME_SIZE:]
