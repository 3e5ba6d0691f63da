"""kio over an asyncio socket, and nothing more: no timeouts, no second tries."""

import asyncio
import io
from typing import Any, Final, Self

from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32

__all__ = ["Connection"]

SIZE: Final = 4  # bytes of a frame's length, and of a correlation id
BODY: Final = 5  # where answers begin: correlation id, no tagged fields

# They take kio's own types only, and so would `ask`.
reader: Any = entity_reader
writer: Any = entity_writer


class Connection(asyncio.Protocol):
    """Asks a broker, and gives each answer to whoever asked."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._last_id = 0
        self._transport: Any = None

    @classmethod
    async def open(cls, bootstrap: str) -> Self:
        host, _, port = bootstrap.rpartition(":")
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, host, int(port))
        return connection

    def close(self) -> None:
        self._transport.close()

    async def ask(self, request: Any, answer: type[Any]) -> Any:
        self._last_id += 1
        frame = io.BytesIO()
        writer(RequestHeader)(frame, _header(request, self._last_id))
        writer(type(request))(frame, request)
        answered = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = answered
        content = frame.getvalue()
        self._transport.write(len(content).to_bytes(SIZE, "big") + content)
        entity, _ = reader(answer)(await answered, BODY)
        return entity

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= SIZE:
            end = SIZE + int.from_bytes(self._received[:SIZE], "big")
            if len(self._received) < end:
                break
            frame = bytes(memoryview(self._received)[SIZE:end])
            del self._received[:end]
            number = int.from_bytes(frame[:SIZE], "big")
            self._waiting.pop(number).set_result(frame)

    def connection_lost(self, error: Exception | None) -> None:
        for answered in self._waiting.values():
            answered.set_exception(error or ConnectionError("closed by the broker"))


def _header(request: Any, number: int) -> RequestHeader:
    return RequestHeader(
        request_api_key=i16(request.__api_key__),
        request_api_version=i16(request.__version__),
        correlation_id=i32(number),
        client_id="raw-ceiling",
    )
