"""A blocking client that sends any request, given as mappings."""

import socket

from tests.broker.messages import (
    API_KEYS,
    decode_response,
    encode_request,
    make_request,
)

__all__ = ["BlockingClient"]

TIMEOUT = 30.0


class BlockingClient:
    """One connection to the first of the bootstrap servers."""

    def __init__(self, bootstrap_servers, client_id="test"):
        host, _, port = bootstrap_servers.split(",")[0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT)
        self._client_id = client_id
        self._requested = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def request(self, api, version, **values):
        """Send a request, and return its response."""
        self.send(api, version, **values)
        return self.receive()

    def send(self, api, version, **values):
        request = make_request(api, version, **values)
        self._socket.sendall(encode_request(request, client_id=self._client_id))
        self._requested.append((API_KEYS[api], version))

    def receive(self):
        """Return the response to the oldest request without a response."""
        frame = self._read(int.from_bytes(self._read(4), "big"))
        return decode_response(frame, *self._requested.pop(0))

    def has_response(self):
        """Return whether a response has arrived."""
        self._socket.setblocking(False)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self._socket.settimeout(TIMEOUT)

    def _read(self, size):
        content = b""
        while len(content) < size:
            received = self._socket.recv(size - len(content))
            assert received, "the broker has closed the connection"
            content += received
        return content
