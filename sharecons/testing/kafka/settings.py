"""The settings of a broker for tests."""

from collections.abc import Mapping
from typing import Final

from sharecons.testing.kafka.ports import HOST

__all__ = ["Listeners", "defaults", "format_properties", "node_settings"]

Listeners = Mapping[tuple[str, str], Mapping[int, int]]
"""Each listener's name and security protocol, and its port on each node."""

# The controllers' listener has passwords, so that brokers are a super user there. As
# ANONYMOUS three nodes would never form a quorum: StandardAuthorizer accepts only super
# users until it has read the metadata, which takes a quorum.
USER: Final = "kafka"
JAAS_CONFIG: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{USER}" password="{USER}" user_{USER}="{USER}";'
)
PROTOCOLS: Final = "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
CONTROLLER_SETTINGS: Final[Mapping[str, str]] = {
    "controller.listener.names": "CONTROLLER",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": JAAS_CONFIG,
    "super.users": f"User:{USER}",
}

# All clients are ANONYMOUS and can do anything, until a test adds an ACL.
TEST_SETTINGS: Final[Mapping[str, str]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Lower bounds for groups; the defaults of groups stay Kafka's.
    "group.share.min.session.timeout.ms": "1",
    "group.share.min.heartbeat.interval.ms": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}

# A quorum takes half a second instead of two, and a killed broker is fenced after 5 s
# instead of 9: until then it cannot register again.
QUICK_SETTINGS: Final[Mapping[str, str]] = {
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "5000",
    # The default of 128 MiB is allocated at the start.
    "log.cleaner.dedupe.buffer.size": "4194304",
}


def defaults(brokers: int) -> dict[str, str]:
    """Return the settings of a broker that do not depend on its addresses.

    One broker can be stopped: there are three replicas, and one of them is enough.
    """
    copies = str(min(brokers, 3))
    return {
        **TEST_SETTINGS,
        **QUICK_SETTINGS,
        "default.replication.factor": copies,
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": "1",
    }


def node_settings(
    node_id: int,
    ports: Mapping[int, int],
    controllers: Mapping[int, int],
    beside: Listeners | None = None,
    advertised: Mapping[str, Mapping[int, int]] | None = None,
) -> dict[str, str]:
    """Return the settings of a node's identity, listeners and quorum.

    `beside` are the listeners beside the plain one, `advertised` the ports that clients
    of a listener connect to instead of its own.
    """
    beside = beside or {}
    bound = {"PLAINTEXT": ports} | {name: there for (name, _), there in beside.items()}
    clients = _addresses(bound, node_id)
    reached = _addresses({**bound, **(advertised or {})}, node_id)
    protocols = [f"{name}:{protocol}" for name, protocol in beside]
    voters = (f"{node}@{HOST}:{port}" for node, port in controllers.items())
    return {
        **CONTROLLER_SETTINGS,
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listener.security.protocol.map": ",".join((PROTOCOLS, *protocols)),
        "controller.quorum.voters": ",".join(voters),
        "listeners": ",".join(
            (*clients, f"CONTROLLER://{HOST}:{controllers[node_id]}")
        ),
        "advertised.listeners": ",".join(reached),
    }


def _addresses(listeners: Mapping[str, Mapping[int, int]], node_id: int) -> list[str]:
    return [f"{name}://{HOST}:{there[node_id]}" for name, there in listeners.items()]


def format_properties(settings: Mapping[str, str]) -> str:
    lines = (
        f"{name}={value}".replace("\\", "\\\\") for name, value in settings.items()
    )
    return "".join(f"{line}\n" for line in lines)
