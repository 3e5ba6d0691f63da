"""The errors of requests, with the codes and the messages of their responses."""

from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Response

__all__ = [
    "CLUSTER_DENIED",
    "NO_SUCH_PARTITION",
    "TOPIC_DENIED",
    "ConfigError",
    "GroupError",
    "RequestError",
]


class RequestError(Exception):
    """A request that a broker rejects; nothing has changed."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message

    @property
    def fields(self) -> Response:
        """The fields of most responses."""
        return {"error_code": self.code, "error_message": self.message}


class GroupError(RequestError):
    """A group rejects a request."""


class ConfigError(RequestError):
    """A change of settings is rejected."""


NO_SUCH_PARTITION: Final = RequestError(
    ErrorCode.unknown_topic_or_partition,
    "This server does not host this topic-partition.",
)
TOPIC_DENIED: Final = RequestError(
    ErrorCode.topic_authorization_failed, "Topic authorization failed."
)
CLUSTER_DENIED: Final = RequestError(
    ErrorCode.cluster_authorization_failed, "Cluster authorization failed."
)
