"""kio over an asyncio socket, and nothing more: no timeouts, no second tries."""

import asyncio
import io
from typing import Any, Final, Self

from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32

__all__ = ["Connection"]

SIZE: Final = 4  # bytes of a frame's length
BODY: Final = SIZE + 5  # where an answer begins: correlation id, no tagged fields
BEGINNING: Final = 1 << 16  # bytes to receive until a frame's length is known

# They take kio's own types only, and so would `ask`.
reader: Any = entity_reader
writer: Any = entity_writer


class Connection(asyncio.BufferedProtocol):
    """Asks a broker one thing after the other.

    An answer is received where it stays: with 10 KiB records, gathering the pieces
    that `data_received` is given took more than twice the CPU.
    """

    def __init__(self) -> None:
        self._beginning = memoryview(bytearray(BEGINNING))
        self._frame: memoryview | None = None
        self._received = 0
        self._answered: asyncio.Future[memoryview] | None = None
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
        content = frame.getvalue()
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(len(content).to_bytes(SIZE, "big") + content)
        entity, _ = reader(answer)(await self._answered, BODY)
        return entity

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, size_hint: int) -> memoryview:
        return (self._beginning if self._frame is None else self._frame)[
            self._received :
        ]

    def buffer_updated(self, received: int) -> None:
        self._received += received
        if self._frame is None and self._received >= SIZE:
            size = int.from_bytes(self._beginning[:SIZE], "big")
            self._frame = memoryview(bytearray(SIZE + size))
            self._frame[: self._received] = self._beginning[: self._received]
        if self._frame and self._received == len(self._frame):
            whole, self._frame, self._received = self._frame, None, 0
            if self._answered:
                self._answered.set_result(whole.toreadonly())  # as kio wants it

    def connection_lost(self, error: Exception | None) -> None:
        if self._answered and not self._answered.done():
            self._answered.set_exception(error or ConnectionError("closed"))


def _header(request: Any, number: int) -> RequestHeader:
    return RequestHeader(
        request_api_key=i16(request.__api_key__),
        request_api_version=i16(request.__version__),
        correlation_id=i32(number),
        client_id="raw-ceiling",
    )
