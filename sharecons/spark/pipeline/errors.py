"""The pipeline's errors."""

from sharecons.errors import Error

__all__ = ["CommitError", "InvalidValueError", "PublishError"]


class PublishError(Error):
    """The files of a batch cannot be moved to their place."""


class CommitError(Error):
    """A commit file is damaged, or does not fit the batch or the output."""


class InvalidValueError(Exception):
    """A record's value does not match the schema.

    The text becomes the reason in quarantine. It contains the column and the
    fault, but not the value, so that equal reasons can be counted.
    """

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(what, path)
        self._what = what
        self._path = path

    def within(self, name: str) -> "InvalidValueError":
        """Return the same error for a value within the column `name`."""
        dot = "." if self._path and self._path[0] not in "[{" else ""
        return InvalidValueError(self._what, f"{name}{dot}{self._path}")

    def __str__(self) -> str:
        return f"{self._path}: {self._what}" if self._path else self._what
