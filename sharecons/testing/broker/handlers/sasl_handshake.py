"""SaslHandshake 0 and 1: an error, since the listener has SASL disabled."""

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    return {"error_code": ErrorCode.illegal_sasl_state, "mechanisms": ()}
