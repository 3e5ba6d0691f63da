"""Look-ups of host names on asyncio, which delay no end of the program."""

import asyncio
import os
import socket
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

from sharecons.daemon_threads import start_call

__all__ = ["AddressInfo", "look_up"]

AddressInfo: TypeAlias = tuple[
    socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]
]

_look_ups: Final[dict[tuple[int, str, int], "Future[Sequence[AddressInfo]]"]] = {}
"""Look-ups that have not ended. Retries join them, so that a resolver that hangs has
one thread for each host. The process id keeps forked processes apart."""


async def look_up(host: str, port: int) -> Sequence[AddressInfo]:
    """Return the addresses of a host.

    Raises:
        OSError: the host is unknown.
        UnicodeError: the host is not a valid name.
    """
    name = _encode(host)
    if _is_address(host):
        return _resolve(name, port)  # needs no resolver
    key = os.getpid(), host, port
    found = _look_ups.get(key)
    if found is None:
        found = _look_ups[key] = start_call(partial(_resolve, name, port))
        found.add_done_callback(lambda _: _look_ups.pop(key, None))
    return await asyncio.wrap_future(found)


def _resolve(name: bytes, port: int) -> Sequence[AddressInfo]:
    return socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)


def _encode(host: str) -> bytes:
    """Encode a host name; other characters than ASCII by IDNA 2008."""
    if host.isascii():
        return host.encode()
    import idna

    return idna.encode(host, uts46=True)


def _is_address(host: str) -> bool:
    """Return whether a host is an IP address, possibly with an IPv6 zone."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            socket.inet_pton(family, host.partition("%")[0])
            return True
    return False
