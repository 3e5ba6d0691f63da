"""The exception of this package, for bytes that are not valid record batches."""

from typing import Final

__all__ = ["UNREADABLE", "DamagedError", "is_damage"]

UNREADABLE: Final = "this client cannot read it: "
"""How the reason begins if the bytes are perhaps intact."""


class DamagedError(Exception):
    """Bytes are not a valid batch or record; the message is the reason shown to users.

    `batch.decode` converts it to an entry of `Decoded.undecodable`; any other exception
    from `decode` is a bug.
    """


def is_damage(reason: str) -> bool:
    """Return False if another version of this client might read the bytes."""
    return not reason.startswith(UNREADABLE)
