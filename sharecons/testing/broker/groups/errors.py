"""The error of a group's requests."""

from sharecons.testing.broker.codec import ErrorCode

__all__ = ["GroupError"]


class GroupError(Exception):
    """The group rejects a request; nothing has changed."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message
