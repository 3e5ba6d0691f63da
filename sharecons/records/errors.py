"""The exception of this package, for bytes that are not valid record batches."""

__all__ = ["DamagedError"]


class DamagedError(Exception):
    """Bytes are not a valid batch or record; the message is the reason shown to users.

    `batch.decode` converts it to an entry of `Decoded.undecodable`; any other exception
    from `decode` is a bug.
    """
