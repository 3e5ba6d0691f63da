"""Free ports of this machine, which brokers keep when they are restarted."""

import random
import socket
from collections.abc import Collection
from contextlib import ExitStack
from typing import Final

from sharecons.testing.kafka.errors import LaunchError

__all__ = ["HOST", "free_ports", "is_free"]

HOST: Final = "127.0.0.1"

# Below the ranges for outgoing connections (Linux from 32768, others from 49152). From
# these ranges, a client that connects to a stopped broker could itself get the broker's
# port and connect to itself, and the broker could not start again.
PORT_RANGE: Final = range(20_000, 32_000)
MAX_TRIES: Final = 2_000


def free_ports(count: int, beside: Collection[int] = ()) -> list[int]:
    """Return free ports that are not among `beside`.

    Raises:
        LaunchError: there are not enough.
    """
    ports: list[int] = []
    with ExitStack() as held:  # all are bound until enough are found
        for port in random.sample(PORT_RANGE, MAX_TRIES):
            if len(ports) == count:
                return ports
            if port not in beside and _bind(port, held):
                ports.append(port)
    raise LaunchError(
        f"{count} free ports between {PORT_RANGE.start} and {PORT_RANGE.stop} were "
        "not found"
    )


def is_free(port: int) -> bool:
    """Return whether a broker could bind a port."""
    with ExitStack() as held:
        return _bind(port, held)


def _bind(port: int, held: ExitStack) -> bool:
    listener = held.enter_context(socket.socket())
    # As in Java: lingering connections of an earlier run are ignored.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        return False
    return True
