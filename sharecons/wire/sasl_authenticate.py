"""SaslAuthenticate (36): a SASL mechanism's bytes, and the session's lifetime."""

from functools import cache
from importlib import import_module
from types import ModuleType

from sharecons.protocol.sasl.authentication import (
    SaslAuthenticate,
    SaslAuthenticateResponse,
)
from sharecons.wire.codec.api import Api, Frame, read_entity, seconds, write_entity

__all__ = ["SASL_AUTHENTICATE"]


@cache
def _schema(version: int) -> ModuleType:
    # Loaded on first use, so that clients without SASL do not load it.
    return import_module(f"kio.schema.sasl_authenticate.v{version}")


def _write(request: SaslAuthenticate, version: int) -> bytes:
    kind = _schema(version).SaslAuthenticateRequest
    return write_entity(kind(auth_bytes=request.payload))


def _read(frame: Frame, offset: int, version: int) -> SaslAuthenticateResponse:
    response = read_entity(_schema(version).SaslAuthenticateResponse, frame, offset)
    return SaslAuthenticateResponse(
        error=int(response.error_code),
        message=response.error_message,
        payload=bytes(response.auth_bytes),
        session_lifetime=seconds(response.session_lifetime),
    )


SASL_AUTHENTICATE: Api[SaslAuthenticate, SaslAuthenticateResponse] = Api(
    key=36,
    name="SaslAuthenticate",
    versions=range(2, 3),
    write=_write,
    read=_read,
)
