"""When brokers are up: each one answers, and knows of all the others."""

import time
from collections.abc import Collection, Mapping
from typing import Final

from sharecons.testing.kafka.admin_requests import registered_brokers
from sharecons.testing.kafka.errors import LaunchError
from sharecons.testing.kafka.node import Node
from sharecons.testing.kafka.ports import HOST

__all__ = ["wait_until_up"]

PAUSE: Final = 0.05
LINES: Final = 30  # of its log, in the error of a broker that did not come up


def wait_until_up(
    nodes: Mapping[int, Node],
    ports: Mapping[int, int],
    started: Collection[int],
    patience: float,
) -> None:
    """Wait until every broker that lives knows of all that live.

    Raises:
        LaunchError: one of those just started ended, or time is up.
    """
    deadline = time.monotonic() + patience
    while True:
        for node_id in started:
            if not nodes[node_id].running:
                raise _failure(nodes[node_id], "ended by itself")
        if not (late := _late(nodes, ports)):
            return
        if time.monotonic() > deadline:
            raise _failure(nodes[late[0]], f"is not up after {patience:g} s")
        time.sleep(PAUSE)


def _late(nodes: Mapping[int, Node], ports: Mapping[int, int]) -> list[int]:
    """Name who does not answer yet, or does not know of all."""
    wanted = {node_id for node_id, node in nodes.items() if node.running}
    known = {node_id: registered_brokers((HOST, ports[node_id])) for node_id in wanted}
    return sorted(node_id for node_id in wanted if not known[node_id] >= wanted)


def _failure(node: Node, what: str) -> LaunchError:
    return LaunchError(
        f"broker {node.node_id} {what}; its log ends:\n{node.log_tail(LINES)}"
    )
