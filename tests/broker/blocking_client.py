"""A blocking client that sends any request of kio's, given as mappings."""

import io
import socket
import typing
from dataclasses import fields
from datetime import timedelta
from importlib import import_module

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

__all__ = ["BlockingClient"]

KEYS = {name: key for key, name in api_key_map.items()}


class BlockingClient:
    """One connection; times are in milliseconds, as in the protocol."""

    def __init__(self, bootstrap_servers, client_id="test"):
        host, _, port = bootstrap_servers.split(",")[0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._client_id = client_id
        self._requested = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def request(self, api, version, **values):
        self.send(api, version, **values)
        return self.receive()

    def send(self, api, version, **values):
        kind = load_request_schema(KEYS[api], version)
        head = kind.__header_schema__
        header = head(
            request_api_key=KEYS[api],
            request_api_version=version,
            correlation_id=1,
            client_id=self._client_id,
        )
        buffer = io.BytesIO()
        entity_writer(head)(buffer, header)
        entity_writer(kind)(buffer, built(kind, values))
        content = buffer.getvalue()
        self._socket.sendall(len(content).to_bytes(4, "big") + content)
        self._requested.append((KEYS[api], version))

    def receive(self):
        """Return the response to the oldest request without a response."""
        kind = load_response_schema(*self._requested.pop(0))
        frame = self._read(int.from_bytes(self._read(4), "big"))
        _, size = entity_reader(kind.__header_schema__)(frame, 0)
        response, _ = entity_reader(kind)(frame, size)
        return response

    def has_response(self):
        """Return whether a response has arrived."""
        self._socket.setblocking(False)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self._socket.settimeout(30)

    def _read(self, size):
        content = b""
        while len(content) < size:
            received = self._socket.recv(size - len(content))
            assert received, "the broker has closed the connection"
            content += received
        return content


def built(kind, values):
    """Return an entity with the values that its version has fields for."""
    module = import_module(kind.__module__)
    hints = typing.get_type_hints(kind, vars(module))
    return kind(
        **{
            field.name: one(field, hints[field.name], values[field.name])
            for field in fields(kind)
            if field.name in values
        }
    )


def one(field, declared, value):
    if field.metadata.get("kafka_type", "").startswith("timedelta"):
        return timedelta(milliseconds=value)
    if isinstance(value, (list, tuple)):
        kinds = (declared, *typing.get_args(declared))
        (array,) = (k for k in kinds if typing.get_origin(k) is tuple)
        inner = typing.get_args(array)[0]
        return tuple(built(inner, v) if isinstance(v, dict) else v for v in value)
    return value
