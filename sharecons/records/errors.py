"""What the modules of this package raise for bytes that are not what they should be."""

__all__ = ["DamagedError"]


class DamagedError(Exception):
    """Bytes that make no sense; the message is the reason that a user is shown.

    It never leaves this package: `batch.decode` turns it into an entry of
    `Decoded.undecodable`, and every other exception out of `decode` is a bug.
    """
