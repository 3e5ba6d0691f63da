"""The topics that members of the protocol type `consumer` subscribe to.

Their metadata is ConsumerProtocolSubscription: a version, an array of topics, and
fields of later versions.
"""

import struct
from collections.abc import Iterable

__all__ = ["topics_of"]


def topics_of(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all subscriptions; None if one cannot be parsed."""
    try:
        return frozenset(name for data in subscriptions for name in _topics(data))
    except (struct.error, UnicodeDecodeError):
        return None


def _topics(data: bytes) -> list[str]:
    _, count = struct.unpack_from(">hi", data)
    offset, found = 6, []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, offset)
        (name,) = struct.unpack_from(f">{max(length, 0)}s", data, offset + 2)
        found.append(name.decode())
        offset += 2 + len(name)
    return found
