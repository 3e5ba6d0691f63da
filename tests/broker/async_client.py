"""An async client that sends any request, in any version."""

import anyio

from tests.broker.messages import decode_response, encode_request

__all__ = ["Client"]


class Client:
    """Sends requests over a byte stream, one at a time or pipelined."""

    def __init__(self, stream, client_id="test"):
        self.stream = stream
        self._client_id = client_id
        self._correlation_id = 0
        self._received = b""

    async def request(self, request):
        """Send a request, and return its response."""
        await self.send(request)
        return await self.receive(request)

    async def send(self, request):
        self._correlation_id += 1
        await self.stream.send(
            encode_request(request, self._correlation_id, self._client_id)
        )

    async def receive(self, request):
        """Return the next response, which must be the response to this request."""
        frame = await self.frame()
        return decode_response(frame, request.__api_key__, request.__version__)

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
