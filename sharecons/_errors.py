"""The errors that `_record` needs; `sharecons.errors` has all of them.

A module of their own, because `errors` refers to `Record`.
"""

__all__ = ["Error", "RecordStateError"]


class Error(Exception):
    """Base class of all errors of sharecons. Any other exception is a bug to report.

    Attributes:
        retriable: whether the same call can succeed later without a change.
    """

    __module__ = "sharecons.errors"

    retriable: bool = False


class RecordStateError(Error):
    """The record is no longer held, or is already acknowledged in another way."""

    __module__ = "sharecons.errors"
