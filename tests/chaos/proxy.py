"""A TCP proxy before a broker, with connections that fail as networks do."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final, Literal

from sharecons.testing.kafka.ports import HOST

__all__ = ["Mode", "OnBytes", "Proxies"]

Mode = Literal["open", "stall", "throttle", "delay", "drop responses"]

OnBytes = Callable[[bytes, bool], None]
"""Is called with bytes of a connection, and whether they are of a response."""

BLOCK: Final = 65_536
THROTTLED: Final = 8_192
"""Bytes per second and connection while it throttles."""

DELAY: Final = 0.3
"""Seconds by which each block is late while it delays."""

CHECK: Final = 0.05


class Proxies:
    """Proxies in a thread of their own, by the brokers' node ids.

    Args:
        ports: of each proxy.
        targets: the broker's port behind each proxy.
        watch: is called for each connection, and returns a function that receives its
            bytes.
    """

    def __init__(
        self,
        ports: dict[int, int],
        targets: dict[int, int],
        watch: Callable[[], OnBytes] = lambda: lambda data, is_response: None,
    ) -> None:
        self._watch = watch
        self._ports = ports
        self._targets = targets
        self._modes: dict[int, Mode] = dict.fromkeys(ports, "open")
        self._writers: dict[int, set[asyncio.StreamWriter]] = {n: set() for n in ports}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Proxies":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def set_mode(self, node_id: int, mode: Mode) -> None:
        """Change how a proxy passes bytes on, from now on, on all its connections."""
        self._modes[node_id] = mode

    def cut(self, node_id: int) -> None:
        """Reset all connections to a broker; new ones are open.

        A connection that has dropped bytes cannot go on: its stream has a hole.
        """

        def reset() -> None:
            for writer in self._writers[node_id]:
                writer.transport.abort()
            self._modes[node_id] = "open"

        self._loop.call_soon_threadsafe(reset)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        servers = [
            self._loop.run_until_complete(
                asyncio.start_server(self._accept(node_id), HOST, port)
            )
            for node_id, port in self._ports.items()
        ]
        self._ready.set()
        self._loop.run_forever()
        for server in servers:
            server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _accept(self, node_id: int) -> Callable[..., object]:
        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            try:
                behind = await asyncio.open_connection(HOST, self._targets[node_id])
            except OSError:
                writer.transport.abort()
                return
            pair, on_bytes = {writer, behind[1]}, self._watch()
            self._writers[node_id] |= pair
            pumps = [
                asyncio.create_task(self._pump(node_id, *each))
                for each in (
                    (reader, behind[1], on_bytes, False),
                    (behind[0], writer, on_bytes, True),
                )
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                for each in pair:
                    each.transport.abort()
                self._writers[node_id] -= pair

        return serve

    async def _pump(
        self,
        node_id: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_bytes: OnBytes,
        is_response: bool,
    ) -> None:
        try:
            while data := await reader.read(BLOCK):
                on_bytes(data, is_response)
                if await self._passes(node_id, len(data), is_response):
                    writer.write(data)
                    await writer.drain()
        except OSError:
            return

    async def _passes(self, node_id: int, size: int, is_response: bool) -> bool:
        """Wait as the mode says; return whether the bytes are passed on."""
        while self._modes[node_id] == "stall":
            await asyncio.sleep(CHECK)  # real time: as slow as a network
        match self._modes[node_id]:
            case "throttle":
                await asyncio.sleep(size / THROTTLED)  # real time: as slow as a network
            case "delay":
                await asyncio.sleep(DELAY)  # real time: as slow as a network
            case "drop responses":
                return not is_response
            case _:
                pass
        return True
