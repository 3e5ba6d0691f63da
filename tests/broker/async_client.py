"""An async client that sends any request, in any version."""

import io
from dataclasses import fields
from importlib import import_module

import anyio
from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer

__all__ = ["Client", "entity", "request_bytes"]


def entity(api, version, **values):
    """Return a request by its API's name: `entity("metadata", 12, topics=None)`."""
    module = import_module(f"kio.schema.{api}.v{version}.request")
    (kind,) = (
        made
        for name, made in vars(module).items()
        if name.lower() == f"{api.replace('_', '')}request"
    )
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in known})


def request_bytes(request, correlation_id=1, client_id="test"):
    header = type(request).__header_schema__
    buffer = io.BytesIO()
    entity_writer(header)(
        buffer,
        header(
            request_api_key=type(request).__api_key__,
            request_api_version=type(request).__version__,
            correlation_id=correlation_id,
            client_id=client_id,
        ),
    )
    entity_writer(type(request))(buffer, request)
    content = buffer.getvalue()
    return len(content).to_bytes(4, "big") + content


class Client:
    """Sends requests over a byte stream, one at a time or pipelined."""

    def __init__(self, stream, client_id="test"):
        self.stream = stream
        self._client_id = client_id
        self._correlation_id = 0
        self._received = b""

    async def request(self, request):
        await self.send(request)
        return await self.receive(type(request))

    async def send(self, request):
        self._correlation_id += 1
        await self.stream.send(
            request_bytes(request, self._correlation_id, self._client_id)
        )

    async def receive(self, request_type):
        frame = await self.frame()
        kind = load_response_schema(request_type.__api_key__, request_type.__version__)
        _, size = entity_reader(kind.__header_schema__)(frame, 0)
        response, end = entity_reader(kind)(frame, size)
        assert size + end == len(frame) or end == len(frame)
        return response

    async def frame(self):
        await self._fill(4)
        length = 4 + int.from_bytes(self._received[:4], "big")
        await self._fill(length)
        frame, self._received = self._received[4:length], self._received[length:]
        return frame

    async def ended(self):
        """Return whether the broker closes the connection without a response."""
        try:
            await self.stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
        return False

    async def _fill(self, size):
        while len(self._received) < size:
            self._received += await self.stream.receive()
