"""SaslHandshake (17): proposes a SASL mechanism. The API has no flexible version."""

from functools import cache
from importlib import import_module
from types import ModuleType

from sharecons.protocol.sasl.authentication import SaslHandshake, SaslHandshakeResponse
from sharecons.wire.codec.api import (
    SASL_HANDSHAKE_KEY,
    Api,
    Frame,
    read_entity,
    write_entity,
)

__all__ = ["SASL_HANDSHAKE"]


@cache
def _schema(version: int) -> ModuleType:
    # Loaded on first use, so that clients without SASL do not load it.
    return import_module(f"kio.schema.sasl_handshake.v{version}")


def _write(request: SaslHandshake, version: int) -> bytes:
    kind = _schema(version).SaslHandshakeRequest
    return write_entity(kind(mechanism=request.mechanism))


def _read(frame: Frame, offset: int, version: int) -> SaslHandshakeResponse:
    response = read_entity(_schema(version).SaslHandshakeResponse, frame, offset)
    return SaslHandshakeResponse(
        error=int(response.error_code), mechanisms=tuple(response.mechanisms)
    )


SASL_HANDSHAKE: Api[SaslHandshake, SaslHandshakeResponse] = Api(
    # With version 0, the mechanism's bytes would be sent without frames.
    key=SASL_HANDSHAKE_KEY,
    name="SaslHandshake",
    versions=range(1, 2),
    write=_write,
    read=_read,
)
