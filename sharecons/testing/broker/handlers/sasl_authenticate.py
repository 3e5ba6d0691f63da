"""SaslAuthenticate 0 to 2: an error with Kafka's message; see SaslHandshake."""

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    return {
        "error_code": ErrorCode.illegal_sasl_state,
        "error_message": (
            "SaslAuthenticate request received after successful authentication"
        ),
        "auth_bytes": b"",
    }
