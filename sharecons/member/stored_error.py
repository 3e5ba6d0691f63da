"""The error that ended a consumer."""

from typing import NoReturn, final

from sharecons.errors import fresh

__all__ = ["StoredError"]


@final
class StoredError:
    """An error that ended the consumer; every later call raises it.

    Attributes:
        was_raised: a call has raised it.
    """

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self.was_raised = False

    def throw(self) -> NoReturn:
        """Raise a new exception, with the stored one as its cause."""
        self.was_raised = True
        raise fresh(self._error)
