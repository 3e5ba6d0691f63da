"""Waiting until brokers are ready: each responds, and knows all others."""

import time
from collections.abc import Collection, Mapping
from typing import Final

from sharecons.testing.kafka.admin_requests import registered_brokers
from sharecons.testing.kafka.errors import LaunchError
from sharecons.testing.kafka.node import Node
from sharecons.testing.kafka.ports import HOST

__all__ = ["wait_until_ready"]

CHECK_INTERVAL: Final = 0.05
LOG_LINES: Final = 30  # lines of the log in the error of a broker that is not ready


def wait_until_ready(
    nodes: Mapping[int, Node],
    ports: Mapping[int, int],
    started: Collection[int],
    timeout: float,
) -> None:
    """Wait until every running broker knows all running brokers.

    Raises:
        LaunchError: one of those just started has ended, or the time is over.
    """
    deadline = time.monotonic() + timeout
    while True:
        for node_id in started:
            if not nodes[node_id].running:
                raise _error(nodes[node_id], "has ended unexpectedly")
        if not (not_ready := _not_ready(nodes, ports)):
            return
        if time.monotonic() > deadline:
            raise _error(nodes[not_ready[0]], f"is not ready after {timeout:g} s")
        time.sleep(CHECK_INTERVAL)


def _not_ready(nodes: Mapping[int, Node], ports: Mapping[int, int]) -> list[int]:
    """Return the brokers that do not respond yet or do not know all others."""
    wanted = {node_id for node_id, node in nodes.items() if node.running}
    known = {node_id: registered_brokers((HOST, ports[node_id])) for node_id in wanted}
    return sorted(node_id for node_id in wanted if not known[node_id] >= wanted)


def _error(node: Node, what: str) -> LaunchError:
    return LaunchError(
        f"broker {node.node_id} {what}; its log ends:\n{node.log_tail(LOG_LINES)}"
    )
