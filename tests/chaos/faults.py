"""Carries out the faults of a plan on the cluster and on the clients."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Final

from sharecons.testing.kafka.errors import LaunchError
from tests.chaos.certificates import Certificates
from tests.chaos.cluster import Cluster
from tests.chaos.fleet import Fleet
from tests.chaos.histories import NEWEST
from tests.chaos.plan import Fault
from tests.chaos.producing import PacedProducer
from tests.chaos.proxy import Mode

__all__ = ["Faults"]

LOCKS: Final = (15_000, 30_000, 60_000)
"""Milliseconds: the lock duration of groups, one after the other."""

QUOTA: Final = 20_000.0
"""Bytes per second that a broker sends to a client."""

MAX_PARTITIONS: Final = 12

VALID: Final = 15.0
"""Seconds until a certificate expires that is made to expire."""

WALL_JUMPS: Final = (3_600, -3_600, 86_400, -86_400)
MONOTONIC_JUMP: Final = 60
"""Seconds, more than the lock duration and the session timeout."""

LIMITS: Final = (10, 5, 7)
"""Deliveries that a group allows, one after the other."""

MOVING: Final = {
    "kill broker",
    "stop broker",
    "pause broker",
    "full disk",
    "upgrade",
    "move leaders",
    "drain broker",
}
"""Faults after which partitions have other leaders."""

INTERNAL: Final = ("__share_group_state", "__consumer_offsets")


Way = Callable[["Faults", Fault], AbstractContextManager[None]]


class Faults:
    """The faults of one run, for all its clients alike.

    Attributes:
        happened: each fault with the times at which it really began and ended.
        errors: the faults that could not be carried out.
        limits: when the groups' limit of deliveries was changed, and to what.
    """

    def __init__(
        self,
        cluster: Cluster,
        fleets: Sequence[Fleet],
        producers: Sequence[PacedProducer],
    ) -> None:
        self._cluster = cluster
        self._fleets = fleets
        self._producers = producers
        self._deletions: dict[str, list[float]] = {}
        self.limits: list[tuple[float, int]] = []
        self.happened: list[tuple[Fault, float, float]] = []
        self.errors: list[str] = []

    def start(self, fault: Fault) -> threading.Thread:
        """Begin a fault in a thread, which ends it after its time."""
        thread = threading.Thread(target=self._carry_out, args=(fault,), daemon=True)
        thread.start()
        return thread

    @property
    def moves(self) -> list[tuple[float, float]]:
        """The begin and the end of faults after which partitions have other leaders."""
        happened = self.happened
        return [(first, last) for f, first, last in happened if f.kind in MOVING]

    def deletions(self, fleet: Fleet) -> Sequence[float]:
        """Return when the topic of a client was deleted."""
        return self._deletions.get(fleet.name, ())

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

    def _start(self, node_id: int) -> None:
        # Another fault can kill it as it starts, and starts it again.
        with suppress(LaunchError):
            self._cluster.kafka.start_broker(node_id)

    @contextmanager
    def _kill_broker(self, fault: Fault) -> Iterator[None]:
        node_id = self._broker(fault)
        self._cluster.kafka.kill(node_id)
        yield
        self._start(node_id)

    @contextmanager
    def _stop_broker(self, fault: Fault) -> Iterator[None]:
        node_id = self._broker(fault)
        self._cluster.kafka.stop_broker(node_id)
        yield
        self._start(node_id)

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
        self._start(node_id)

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
    def _drain_broker(self, fault: Fault) -> Iterator[None]:
        """Move all partitions that a broker leads to the others, and back."""
        topics = [fleet.options.topic for fleet in self._fleets]
        node_id = self._broker(fault)
        replicas = self._cluster.drain(node_id, (*topics, *INTERNAL))
        try:
            yield
        finally:
            self._cluster.admin.reassign(replicas)

    @contextmanager
    def _change_delivery_limit(self, fault: Fault) -> Iterator[None]:
        limit = LIMITS[fault.number % len(LIMITS)]
        self.limits.append((time.monotonic(), limit))
        for fleet in self._fleets:
            config = {"share.delivery.count.limit": limit}
            self._cluster.admin.set_group_config(fleet.options.group, config)
        yield

    @contextmanager
    def _recreate_topic(self, _: Fault) -> Iterator[None]:
        """Delete the topics, and create them again under their names."""
        admin = self._cluster.admin
        with ExitStack() as pauses:
            partitions = {}
            for fleet, producer in zip(self._fleets, self._producers, strict=True):
                pauses.enter_context(producer.paused())
                topic = fleet.options.topic
                partitions[topic] = admin.partitions(topic)
                admin.delete_topic(topic)
                self._deletions.setdefault(fleet.name, []).append(time.monotonic())
            yield
            for topic, count in partitions.items():
                admin.create_topic(count, topic, replication=3)

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

    @contextmanager
    def _renew_certificates(self, fault: Fault) -> Iterator[None]:
        certificates = self._certificates()
        if fault.number % 2:
            certificates.add_authority()
        for node_id in self._cluster.kafka.running:
            self._renew_broker(node_id)
        certificates.renew_client()
        self._cut_all()
        yield

    @contextmanager
    def _expire_broker(self, fault: Fault) -> Iterator[None]:
        node_id = self._broker(fault)
        self._renew_broker(node_id, VALID)
        time.sleep(VALID + 1.0)  # real time: the certificate expires
        self._cluster.proxies.cut(node_id)
        try:
            yield
        finally:
            self._renew_broker(node_id)

    @contextmanager
    def _expire_client(self, fault: Fault) -> Iterator[None]:
        self._certificates().renew_client(VALID)
        self._cut_all()
        time.sleep(VALID + 1.0)  # real time: the certificate expires
        self._cluster.proxies.cut(self._broker(fault))
        try:
            yield
        finally:
            self._certificates().renew_client()

    @contextmanager
    def _change_password(self, fault: Fault) -> Iterator[None]:
        servers = self._cluster.kafka.bootstrap_servers
        self._certificates().change_password(servers)
        self._cluster.proxies.cut(self._broker(fault))
        yield

    def _certificates(self) -> Certificates:
        assert self._cluster.certificates is not None, "a run with TLS"
        return self._cluster.certificates

    def _renew_broker(self, node_id: int, seconds: float | None = None) -> None:
        servers = self._cluster.kafka.brokers[node_id]
        self._certificates().renew_broker(servers, node_id, seconds)

    def _cut_all(self) -> None:
        for node_id in self._cluster.kafka.brokers:
            self._cluster.proxies.cut(node_id)

    @contextmanager
    def _set_wall_clock(self, fault: Fault) -> Iterator[None]:
        jump = WALL_JUMPS[fault.number % len(WALL_JUMPS)]
        for fleet in self._fleets:
            fleet.set_wall_clock(fault.number, jump)
        try:
            yield
        finally:
            for fleet in self._fleets:
                fleet.set_wall_clock(fault.number, 0)

    @contextmanager
    def _advance_monotonic_clock(self, _: Fault) -> Iterator[None]:
        for fleet in self._fleets:
            fleet.advance_monotonic_clock(MONOTONIC_JUMP)
        yield

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
        "drain broker": _drain_broker,
        "lock duration": _change_lock_duration,
        "delivery limit": _change_delivery_limit,
        "add partitions": _add_partitions,
        "quota": _quota,
        "deny topic": _deny_topic,
        "renew certificates": _renew_certificates,
        "broker certificate": _expire_broker,
        "client certificate": _expire_client,
        "password": _change_password,
        "wall clock": _set_wall_clock,
        "monotonic clock": _advance_monotonic_clock,
        "recreate topic": _recreate_topic,
    }
    """By the kinds of a plan."""
