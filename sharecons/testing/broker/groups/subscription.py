"""The topics that members of the protocol type `consumer` subscribe to.

Their metadata is the consumer's own (ConsumerProtocolSubscription): a version, then
an array of topics; whatever later versions have comes after these.
"""

import struct
from collections.abc import Iterable

__all__ = ["topics_of"]


def topics_of(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Give the topics of all of them; None if one of them cannot be read."""
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
