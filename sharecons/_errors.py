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

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have other arguments than `args`, the message.
        return _new_error, (type(self), self.args), vars(self)


def _new_error(kind: type[Error], args: tuple[object, ...]) -> Error:
    return kind.__new__(kind, *args)


class RecordStateError(Error):
    """The record is no longer held, or is already acknowledged in another way."""

    __module__ = "sharecons.errors"
