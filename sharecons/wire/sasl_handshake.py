"""SaslHandshake (17): a mechanism is proposed. It has no flexible version."""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Final

from sharecons.protocol.sasl.authentication import SaslHandshake, SaslHandshakeResponse
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity

__all__ = ["KEY", "SASL_HANDSHAKE"]

KEY: Final = 17


@cache
def _schema(version: int) -> ModuleType:
    # Loaded by those who use SASL, and by nobody else.
    return import_module(f"kio.schema.sasl_handshake.v{version}")


def _write(request: SaslHandshake, version: int) -> bytes:
    kind = _schema(version).SaslHandshakeRequest
    return write_entity(kind(mechanism=request.mechanism))


def _read(frame: Frame, offset: int, version: int) -> SaslHandshakeResponse:
    answer = read_entity(_schema(version).SaslHandshakeResponse, frame, offset)
    return SaslHandshakeResponse(
        error=int(answer.error_code), mechanisms=tuple(answer.mechanisms)
    )


SASL_HANDSHAKE: Api[SaslHandshake, SaslHandshakeResponse] = Api(
    # With version 0 the mechanism's bytes would have no frame around them.
    key=KEY,
    name="SaslHandshake",
    versions=range(1, 2),
    write=_write,
    read=_read,
)
