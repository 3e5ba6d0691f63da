"""Any request of kio's, from mappings, to any Kafka; one at a time."""

import base64
import socket
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from types import NoneType
from typing import get_args

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader

from tests.broker.async_client import request_bytes

__all__ = ["KEYS", "RawClient", "base64_id", "built"]

KEYS = {name: key for key, name in api_key_map.items()}
PATIENCE = 20.0


class RawClient:
    """One connection."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self._stream = self._socket.makefile("rb")

    def request(self, api, version, **values):
        kind = load_request_schema(KEYS[api], version)
        self._socket.sendall(request_bytes(built(kind, values)))
        frame = self._stream.read(int.from_bytes(self._stream.read(4), "big"))
        response = load_response_schema(KEYS[api], version)
        _, size = entity_reader(response.__header_schema__)(frame, 0)
        return entity_reader(response)(frame, size)[0]

    def close(self):
        self._stream.close()
        self._socket.close()


def built(kind, values):
    """Return an entity from mappings; absent fields are empty."""
    return kind(
        **{
            each.name: part(each, values[each.name])
            if each.name in values
            else default_value(each)
            for each in fields(kind)
            if each.name in values or each.default is MISSING
        }
    )


def part(field, value):
    struct = next((t for t in parts(field.type) if is_dataclass(t)), None)
    if struct is None or value is None:
        return value
    return tuple(built(struct, each) for each in value)


def parts(declared):
    yield declared
    for inner in get_args(declared):
        yield from parts(inner)


def default_value(field):
    kind = field.metadata.get("kafka_type", "")
    if NoneType in get_args(field.type):
        return None
    if any(is_dataclass(each) for each in parts(field.type)):
        return ()
    if kind.startswith("timedelta"):
        return timedelta(0)
    return {"bool": False, "string": ""}.get(kind, 0)


def base64_id(some_id):
    return base64.urlsafe_b64encode(some_id.bytes).rstrip(b"=").decode()
