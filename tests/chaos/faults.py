"""Carries out the faults of a plan on the cluster and on the clients."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from tests.chaos.cluster import Cluster
from tests.chaos.fleet import Fleet
from tests.chaos.plan import Fault
from tests.chaos.proxy import Mode

__all__ = ["NEWEST", "Faults"]

LOCKS: Final = (15_000, 30_000, 60_000)
"""Milliseconds: the lock duration of groups, one after the other."""

NEWEST: Final = "4.4.0"
"""The version after an upgrade."""

QUOTA: Final = 20_000.0
"""Bytes per second that a broker sends to a client."""

MAX_PARTITIONS: Final = 12


Way = Callable[["Faults", Fault], AbstractContextManager[None]]


class Faults:
    """The faults of one run, for all its clients alike.

    Attributes:
        happened: each fault with the times at which it really began and ended.
        errors: the faults that could not be carried out.
    """

    def __init__(self, cluster: Cluster, fleets: Sequence[Fleet]) -> None:
        self._cluster = cluster
        self._fleets = fleets
        self.happened: list[tuple[Fault, float, float]] = []
        self.errors: list[str] = []

    def start(self, fault: Fault) -> threading.Thread:
        """Begin a fault in a thread, which ends it after its time."""
        thread = threading.Thread(target=self._carry_out, args=(fault,), daemon=True)
        thread.start()
        return thread

    def _carry_out(self, fault: Fault) -> None:
        began = time.monotonic()
        try:
            with self.WAYS[fault.kind](self, fault):
                rest = began + fault.seconds - time.monotonic()
                time.sleep(max(0.0, rest))  # real time: the fault lasts
        except Exception as error:
            self.errors.append(f"{fault}: {type(error).__name__}: {error}")
        self.happened.append((fault, began, time.monotonic()))

    def _broker(self, fault: Fault) -> int:
        options = self._fleets[fault.number % len(self._fleets)].options
        return self._cluster.broker(
            fault.role, options.topic, options.group, fault.number
        )

    @contextmanager
    def _kill_broker(self, fault: Fault) -> Iterator[None]:
        node_id = self._broker(fault)
        self._cluster.kafka.kill(node_id)
        yield
        self._cluster.kafka.start_broker(node_id)

    @contextmanager
    def _stop_broker(self, fault: Fault) -> Iterator[None]:
        node_id = self._broker(fault)
        self._cluster.kafka.stop_broker(node_id)
        yield
        self._cluster.kafka.start_broker(node_id)

    @contextmanager
    def _pause_broker(self, fault: Fault) -> Iterator[None]:
        node_id = self._broker(fault)
        self._cluster.kafka.pause(node_id)
        try:
            yield
        finally:
            self._cluster.kafka.resume(node_id)

    @contextmanager
    def _full_disk(self, fault: Fault) -> Iterator[None]:
        node_id = self._broker(fault)
        self._cluster.kafka.fill_disk(node_id)
        yield
        self._cluster.kafka.kill(node_id)
        self._cluster.kafka.start_broker(node_id)

    @contextmanager
    def _upgrade(self, _: Fault) -> Iterator[None]:
        self._cluster.kafka.version = NEWEST
        for node_id in sorted(self._cluster.kafka.brokers):
            self._cluster.kafka.stop_broker(node_id)
            self._cluster.kafka.start_broker(node_id)
        yield

    @contextmanager
    def _kill_client(self, fault: Fault) -> Iterator[None]:
        for fleet in self._fleets:
            fleet.kill(fleet.pick(fault.number))
        yield
        for fleet in self._fleets:
            fleet.restart(fleet.pick(fault.number))

    @contextmanager
    def _stop_client(self, fault: Fault) -> Iterator[None]:
        for fleet in self._fleets:
            fleet.stop_one(fleet.pick(fault.number))
        yield
        for fleet in self._fleets:
            fleet.restart(fleet.pick(fault.number))

    @contextmanager
    def _pause_client(self, fault: Fault) -> Iterator[None]:
        for fleet in self._fleets:
            fleet.pause(fleet.pick(fault.number))
        try:
            yield
        finally:
            for fleet in self._fleets:
                fleet.resume(fleet.pick(fault.number))

    @contextmanager
    def _cut(self, fault: Fault) -> Iterator[None]:
        self._cluster.proxies.cut(self._broker(fault))
        yield

    @contextmanager
    def _proxy_mode(self, fault: Fault) -> Iterator[None]:
        modes: Mapping[str, Mode] = {
            "stall": "stall",
            "throttle": "throttle",
            "delay": "delay",
        }
        node_id = self._broker(fault)
        self._cluster.proxies.set_mode(node_id, modes[fault.kind])
        try:
            yield
        finally:
            self._cluster.proxies.set_mode(node_id, "open")

    @contextmanager
    def _drop_responses(self, fault: Fault) -> Iterator[None]:
        node_id = self._broker(fault)
        self._cluster.proxies.set_mode(node_id, "drop responses")
        try:
            yield
        finally:
            self._cluster.proxies.cut(node_id)

    @contextmanager
    def _move_leaders(self, fault: Fault) -> Iterator[None]:
        for fleet in self._fleets:
            topic, partition = fleet.options.topic, fault.number % 6
            others = self._cluster.kafka.running - {
                self._cluster.admin.leader(topic, partition)
            }
            self._cluster.admin.move_leader(topic, partition, min(others))
        yield

    @contextmanager
    def _change_lock_duration(self, fault: Fault) -> Iterator[None]:
        config = {"share.record.lock.duration.ms": LOCKS[fault.number % len(LOCKS)]}
        for fleet in self._fleets:
            self._cluster.admin.set_group_config(fleet.options.group, config)
        yield

    @contextmanager
    def _add_partitions(self, fault: Fault) -> Iterator[None]:
        for fleet in self._fleets:
            self._cluster.add_partition(fleet.options.topic, MAX_PARTITIONS)
        yield

    @contextmanager
    def _quota(self, fault: Fault) -> Iterator[None]:
        for fleet in self._fleets:
            self._cluster.admin.set_consumer_quota(fleet.options.client_id, QUOTA)
        try:
            yield
        finally:
            for fleet in self._fleets:
                self._cluster.admin.set_consumer_quota(fleet.options.client_id, 1e9)

    @contextmanager
    def _deny_topic(self, fault: Fault) -> Iterator[None]:
        for fleet in self._fleets:
            self._cluster.admin.deny_topic(fleet.options.topic)
        try:
            yield
        finally:
            for fleet in self._fleets:
                self._cluster.admin.allow_topic(fleet.options.topic)

    WAYS: Final[Mapping[str, Way]] = {
        "kill broker": _kill_broker,
        "stop broker": _stop_broker,
        "pause broker": _pause_broker,
        "full disk": _full_disk,
        "upgrade": _upgrade,
        "kill client": _kill_client,
        "stop client": _stop_client,
        "pause client": _pause_client,
        "cut": _cut,
        "stall": _proxy_mode,
        "throttle": _proxy_mode,
        "delay": _proxy_mode,
        "drop responses": _drop_responses,
        "move leaders": _move_leaders,
        "lock duration": _change_lock_duration,
        "add partitions": _add_partitions,
        "quota": _quota,
        "deny topic": _deny_topic,
    }
    """By the kinds of a plan."""
