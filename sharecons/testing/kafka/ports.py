"""Free ports of this machine, to be kept over a broker's restarts."""

import random
import socket
from collections.abc import Collection
from contextlib import ExitStack
from typing import Final

from sharecons.testing.kafka.errors import LaunchError

__all__ = ["HOST", "free_ports", "is_free"]

HOST: Final = "127.0.0.1"

# Below what systems hand out to outgoing connections (Linux from 32768, others
# from 49152). From that range a client that tries to reach a broker that is
# down would sooner or later be given the broker's own port, connect to itself,
# and the broker could not come back.
RANGE: Final = range(20_000, 32_000)
TRIES: Final = 2_000


def free_ports(count: int, beside: Collection[int] = ()) -> list[int]:
    """Pick ports that nobody listens on, and that are not among `beside`.

    Raises:
        LaunchError: there are none.
    """
    ports: list[int] = []
    with ExitStack() as held:  # each is held until all are found
        for port in random.sample(RANGE, TRIES):
            if len(ports) == count:
                return ports
            if port not in beside and _taken(port, held):
                ports.append(port)
    raise LaunchError(f"no {count} free ports from {RANGE.start} to {RANGE.stop}")


def is_free(port: int) -> bool:
    """Tell whether a broker could listen on a port."""
    with ExitStack() as held:
        return _taken(port, held)


def _taken(port: int, held: ExitStack) -> bool:
    listener = held.enter_context(socket.socket())
    # As Java does it: connections that linger from an earlier run do not count.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        return False
    return True
