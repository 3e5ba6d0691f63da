"""Kafka brokers for tests: the fixtures `kafka` and `kafka3`, and their `Admin`.

`kafka` and `kafka3` are real Kafka clusters of one and three brokers. `any_kafka` and
`any_kafka3` run a test twice: on the real cluster (marked `kafka`) and on the embedded
broker.

SHARECONS_TEST_BOOTSTRAP      bootstrap servers of a running Kafka to use as `kafka`
SHARECONS_TEST_KAFKA_VERSION  the version to start, by default 4.3.0
SHARECONS_TEST_DOCKER=1       start `kafka` in a container
SHARECONS_TEST_BROKER         the brokers of `any_kafka`: kafka, embedded or both. The
                              default is both, or kafka if the version is not the one
                              that the embedded broker implements

Tests that use a Kafka fail if it does not start.
"""

import io
import os
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeVar

import pytest
from confluent_kafka import (
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from kio.schema.alter_client_quotas.v1 import request as quota
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.schema.alter_partition_reassignments.v0 import request as reassignment
from kio.schema.alter_partition_reassignments.v0.response import (
    AlterPartitionReassignmentsResponse,
)
from kio.schema.describe_configs.v4 import request as description
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.incremental_alter_configs.v1 import request as alteration
from kio.schema.incremental_alter_configs.v1.response import (
    IncrementalAlterConfigsResponse,
)
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.request_header.v2 import RequestHeader
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import f64, i8, i16, i32

from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka import KafkaCluster
from sharecons.testing.kafka.admin_requests import registered_brokers
from sharecons.testing.kafka.ports import HOST, free_ports
from sharecons.testing.kafka.settings import TEST_SETTINGS, defaults
from tests.waiting import until_true

Address = tuple[str, int]
ResponseT = TypeVar("ResponseT")

EMBEDDED: Final = "4.3.0"  # the version that the embedded broker implements
VERSION: Final = os.environ.get("SHARECONS_TEST_KAFKA_VERSION", EMBEDDED)
BROKERS: Final = os.environ.get(
    "SHARECONS_TEST_BROKER", "both" if VERSION == EMBEDDED else "kafka"
)
OUTSIDE: Final = os.environ.get("SHARECONS_TEST_BOOTSTRAP")
IN_DOCKER: Final = os.environ.get("SHARECONS_TEST_DOCKER") == "1"

KEEPING: Final = {
    "log.retention.check.interval.ms": str(24 * 3_600_000),
    "log.initial.task.delay.ms": str(24 * 3_600_000),
}
"""Records with old timestamps stay: no log is checked for expired segments.

By default logs are checked 30 s after the start, and then every five minutes.
"""

TIMEOUT: Final = 30.0  # seconds for one request or change
ATTEMPTS: Final = 3
PAUSE: Final = 0.02
GROUP: Final = i8(32)  # the resource type of a group's settings (KIP-848)
SET: Final = i8(0)
READ: Final = 3  # AclOperation

# Its stubs declare half of its exports.
confluent: Any = import_module("confluent_kafka.admin")
reader: Any = entity_reader  # its type variable accepts only kio's own types


class Admin:
    """Administration of a Kafka by tests; each method waits until all brokers agree."""

    network: None = None
    """The `network` of consumers: None is TCP."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._client: Any = confluent.AdminClient(self._settings())
        self._created: set[str] = set()

    def create_topic(
        self,
        partitions: int = 1,
        name: str | None = None,
        replication: int = 1,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic, by default with a unique name."""
        topic = name or f"topic-{uuid.uuid4().hex[:12]}"
        new_topic = confluent.NewTopic(
            topic, partitions, replication, config=dict(config or {})
        )
        make_change(
            lambda: self._client.create_topics([new_topic]),
            done=KafkaError.TOPIC_ALREADY_EXISTS,
        )
        self._created.add(topic)
        self._until(f"topic {topic} has leaders", lambda at: _has_leaders(at, topic))
        return topic

    def partitions(self, topic: str) -> int:
        """Return the number of a topic's partitions.

        A broker that has just started does not know the topic yet.
        """
        return _result(
            f"{topic} is known",
            lambda: len(_leaders(self._any_broker(), topic)) or None,
        )

    def add_partitions(self, topic: str, total: int) -> None:
        """Raise the number of a topic's partitions to `total`."""
        change = confluent.NewPartitions(topic, total)
        make_change(
            lambda: self._client.create_partitions([change]),
            done=KafkaError.INVALID_PARTITIONS,
        )
        self._until(
            f"topic {topic} has {total} partitions",
            lambda at: len(_leaders(at, topic)) == total and _has_leaders(at, topic),
        )

    def delete_topic(self, topic: str) -> None:
        make_change(
            lambda: self._client.delete_topics([topic]),
            done=KafkaError.UNKNOWN_TOPIC_OR_PART,
        )
        self._created.discard(topic)
        self._until(f"topic {topic} is gone", lambda at: _topic(at, topic) is None)

    def delete_created(self) -> None:
        """Delete the topics of this test run, in a Kafka that keeps running."""
        for topic in sorted(self._created):
            with suppress(KafkaException):
                self.delete_topic(topic)

    def produce(
        self,
        topic: str,
        values: Iterable[bytes | str | None],
        partition: int | None = None,
        keys: Sequence[bytes | str | None] | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        compression: str = "none",
        **producer_config: Any,
    ) -> None:
        """Write records, and wait until each is acknowledged.

        All records get the headers. Settings of the producer are written with
        underscores: `linger_ms=60_000`. The flush ends a linger, so a long one costs
        no time, and batches are full however busy the machine is.
        """
        producer = self.producer(compression_type=compression, **producer_config)
        where = {} if partition is None else {"partition": partition}
        errors: list[object] = []

        def delivered(error: object, _: object) -> None:
            if error is not None:
                errors.append(error)

        for number, value in enumerate(values):
            key = None if keys is None else keys[number]
            what = {**where, "value": value, "key": key, "headers": list(headers)}
            _queued(producer, topic, {**what, "on_delivery": delivered})
        left = producer.flush(TIMEOUT)
        assert not left, f"{left} records were not acknowledged in {TIMEOUT:g} s"
        assert not errors, f"{len(errors)} records were rejected: {errors[0]}"

    def producer(self, **config: Any) -> Producer:
        """Return a producer, for example for transactions."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        return Producer({**self._settings(), **settings})

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records of a partition before an offset."""
        where = TopicPartition(topic, partition, before)
        make_change(lambda: self._client.delete_records([where]))

    def set_group_config(self, group: str, config: Mapping[str, object]) -> None:
        """Set a group's own settings, such as share.record.lock.duration.ms.

        librdkafka cannot do this: it has no resource type for groups.
        """
        expected = {name: str(value) for name, value in config.items()}
        settings = tuple(
            alteration.AlterableConfig(name=name, config_operation=SET, value=value)
            for name, value in expected.items()
        )
        resource = alteration.AlterConfigsResource(
            resource_type=GROUP, resource_name=group, configs=settings
        )
        request = alteration.IncrementalAlterConfigsRequest(
            resources=(resource,), validate_only=False
        )
        response = send_request(
            self._any_broker(), request, IncrementalAlterConfigsResponse
        )
        _skip_without_config(response.responses[0])
        _check(response.responses[0])
        self._until(
            f"group {group} has {expected}",
            lambda at: expected.items() <= _group_config(at, group).items(),
        )

    def group_config(self, group: str) -> dict[str, str | None]:
        """Return all settings of a group, including defaults."""
        return _group_config(self._any_broker(), group)

    def set_consumer_quota(self, client_id: str, bytes_per_second: float) -> None:
        """Limit how many bytes per second one broker sends to a client id."""
        entity = quota.EntityData(entity_type="client-id", entity_name=client_id)
        limit = quota.OpData(
            key="consumer_byte_rate", value=f64(float(bytes_per_second)), remove=False
        )
        request = quota.AlterClientQuotasRequest(
            entries=(quota.EntryData(entity=(entity,), ops=(limit,)),),
            validate_only=False,
        )
        response = send_request(self._any_broker(), request, AlterClientQuotasResponse)
        _check(response.entries[0])

    def group_coordinator(self, group: str) -> int:
        """Return the node id of a group's coordinator; the first call assigns it."""
        request = FindCoordinatorRequest(coordinator_keys=(group,))

        def coordinator() -> int | None:
            response = send_request(
                self._any_broker(), request, FindCoordinatorResponse
            )
            found = response.coordinators[0]
            return None if found.error_code else int(found.node_id)

        return _result(f"a coordinator of {group}", coordinator)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the node id of a partition's leader; -1 if there is none."""
        return _leaders(self._any_broker(), topic).get(partition, -1)

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make a broker the leader: the first replica, which the election prefers."""
        self._put_first(topic, partition, node_id)
        where = [TopicPartition(topic, partition)]

        def moved(address: Address) -> bool:
            return _leaders(address, topic).get(partition) == node_id

        def elected() -> bool | None:
            # An error means not needed or not possible yet; the check below decides.
            with suppress(KafkaException):
                election = self._client.elect_leaders(ElectionType.PREFERRED, where)
                election.result(TIMEOUT)
            return self._everywhere(moved) or None

        _result(f"{topic}-{partition} is led by {node_id}", elected)

    def partitions_led_by(self, topic: str, node_id: int) -> list[int]:
        """Return the partitions of a topic that a broker leads; none of no topic."""
        leaders = _leaders(self._any_broker(), topic)
        return sorted(part for part, leader in leaders.items() if leader == node_id)

    def reassign(self, replicas: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Set the replicas of partitions; the first one leads its partition."""
        self._send_replicas(replicas)
        where = [TopicPartition(each.topic, each.partition) for each in replicas]

        def moved(address: Address) -> bool:
            topics = {each.topic for each in replicas}
            found = {topic: _replicas(address, topic) for topic in topics}
            return all(
                found[each.topic].get(each.partition) == list(nodes)
                for each, nodes in replicas.items()
            )

        self._until(f"{len(where)} partitions have other replicas", moved)
        with suppress(KafkaException):  # most need no election
            self._client.elect_leaders(ElectionType.PREFERRED, where).result(TIMEOUT)

    def deny_topic(self, topic: str) -> None:
        """Forbid a topic to all clients."""
        denial = _denial(confluent.AclBinding, topic)
        make_change(lambda: self._client.create_acls([denial]))
        self._until(f"{topic} is denied", lambda at: _is_denied(at, topic))

    def allow_topic(self, topic: str) -> None:
        """Undo `deny_topic`."""
        denial = _denial(confluent.AclBindingFilter, topic)
        make_change(lambda: self._client.delete_acls([denial]))
        self._until(f"{topic} is allowed", lambda at: not _is_denied(at, topic))

    def hide_records(self, topic: str) -> None:
        """Allow all clients to describe a topic, but not to read it."""
        allowance = _allowance(confluent.AclBinding, topic)
        make_change(lambda: self._client.create_acls([allowance]))
        self._until(f"{topic} is hidden", lambda at: not _is_readable(at, topic))

    def show_records(self, topic: str) -> None:
        """Undo `hide_records`."""
        allowance = _allowance(confluent.AclBindingFilter, topic)
        make_change(lambda: self._client.delete_acls([allowance]))
        self._until(f"{topic} is shown", lambda at: _is_readable(at, topic))

    @contextmanager
    def denied_group(self, group: str) -> Iterator[None]:
        """Deny all operations on a group to all clients."""
        denial = (confluent.AclOperation.ALL, confluent.AclPermissionType.DENY)
        where = (confluent.ResourceType.GROUP, group)
        with self._acl(where, denial):
            self._until(f"{group} is denied", lambda at: _is_group_denied(at, group))
            yield
        self._until(f"{group} is allowed", lambda at: not _is_group_denied(at, group))

    @contextmanager
    def denied_cluster(
        self, operation: confluent.AclOperation, topic: str
    ) -> Iterator[None]:
        """Deny CREATE or DELETE on the cluster to all clients.

        `topic` is a denied topic that does not exist: responses for it show that the
        rule is in force. Once the cluster has an ACL, every operation needs one: the
        first allows all.
        """
        everything = (confluent.AclOperation.ALL, confluent.AclPermissionType.ALLOW)
        denial = (operation, confluent.AclPermissionType.DENY)
        where = (confluent.ResourceType.BROKER, "kafka-cluster")
        with self._acl(where, everything), self._acl(where, denial):
            until_true(
                lambda: self._is_cluster_denied(operation, topic), what="the denial"
            )
            yield
        until_true(
            lambda: not self._is_cluster_denied(operation, topic), what="its end"
        )

    @contextmanager
    def _acl(self, where: tuple[Any, str], rule: tuple[Any, Any]) -> Iterator[None]:
        # The result only says that the controller has written the rule.
        literal = confluent.ResourcePatternType.LITERAL
        which = (*where, literal, "User:ANONYMOUS", "*", *rule)
        binding = confluent.AclBinding(*which)
        make_change(lambda: self._client.create_acls([binding]))
        try:
            yield
        finally:
            acls = confluent.AclBindingFilter(*which)
            make_change(lambda: self._client.delete_acls([acls]))

    def _is_cluster_denied(self, operation: confluent.AclOperation, topic: str) -> bool:
        if operation is confluent.AclOperation.CREATE:
            new = confluent.NewTopic(topic, 1, 1)
            (result,) = self._client.create_topics([new], validate_only=True).values()
        else:
            (result,) = self._client.delete_topics([topic]).values()
        error = result.exception(TIMEOUT)
        return (
            isinstance(error, KafkaException)
            and error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        )

    def _settings(self) -> dict[str, Any]:
        # Errors are raised. librdkafka would also log that brokers are unreachable
        # after a test killed them or the session stopped them.
        return {"bootstrap.servers": self.bootstrap_servers, "log_level": 0}

    def _put_first(self, topic: str, partition: int, node_id: int) -> None:
        old = _result(
            f"{topic}-{partition} is known",
            lambda: _replicas(self._any_broker(), topic).get(partition),
        )
        others = (replica for replica in old if replica != node_id)
        replicas = (node_id, *others)[: len(old)]
        self._send_replicas({TopicPartition(topic, partition): replicas})

    def _send_replicas(self, replicas: Mapping[TopicPartition, Sequence[int]]) -> None:
        topics: dict[str, list[reassignment.ReassignablePartition]] = {}
        for where, nodes in replicas.items():
            change = reassignment.ReassignablePartition(
                partition_index=i32(where.partition),
                replicas=tuple(map(BrokerId, nodes)),
            )
            topics.setdefault(where.topic, []).append(change)
        request = reassignment.AlterPartitionReassignmentsRequest(
            topics=tuple(
                reassignment.ReassignableTopic(
                    name=TopicName(topic), partitions=tuple(changes)
                )
                for topic, changes in topics.items()
            ),
        )
        response = send_request(
            self._any_broker(), request, AlterPartitionReassignmentsResponse
        )
        _check(response)
        for found in response.responses:
            for partition in found.partitions:
                _check(partition)

    def _until(self, what: str, check: Callable[[Address], bool]) -> None:
        _result(what, lambda: self._everywhere(check) or None)

    def _everywhere(self, check: Callable[[Address], bool]) -> bool:
        return all(check(address) for address in self.living_brokers())

    def _any_broker(self) -> Address:
        return self.living_brokers()[0]

    def living_brokers(self) -> list[Address]:
        """Return the reachable brokers: Kafka lists a killed one for 5 s more."""
        for server in self.bootstrap_servers.split(","):
            host, _, port = server.strip().rpartition(":")
            with suppress(OSError):
                response = _metadata((host, int(port)), None)
                listed = [
                    (broker.host, int(broker.port)) for broker in response.brokers
                ]
                if living := [address for address in listed if _listens(address)]:
                    return living
        raise AssertionError(f"no broker of {self.bootstrap_servers} can be reached")


class EmbeddedAdmin(Admin):
    """Administration of embedded brokers."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        super().__init__(broker.bootstrap_servers)
        self._broker = broker

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        self._broker.move_leader(topic, partition, node_id)


class EmbeddedCluster:
    """Embedded brokers with the methods of `KafkaCluster` that tests use."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.broker = broker

    @property
    def bootstrap_servers(self) -> str:
        return self.broker.bootstrap_servers

    @property
    def brokers(self) -> Mapping[int, str]:
        return self.broker.brokers

    @property
    def running(self) -> frozenset[int]:
        return self.broker.running

    def kill(self, node_id: int) -> None:
        self.broker.stop_broker(node_id)

    def stop_broker(self, node_id: int) -> None:
        self.broker.stop_broker(node_id)

    def start_broker(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.broker.start_broker(node_id)


@dataclass(frozen=True, slots=True)
class Kafka:
    """A running Kafka and its administration."""

    bootstrap_servers: str
    admin: Admin
    started: KafkaCluster | EmbeddedCluster | None = None
    version: str = VERSION

    @property
    def cluster(self) -> KafkaCluster | EmbeddedCluster:
        """The brokers, which a test can stop and inspect."""
        if self.started is None:
            pytest.skip("this needs a Kafka that the tests have started themselves")
        return self.started


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka: needs a real Kafka, and a Java for it")


@pytest.fixture(scope="session")
def real_kafka() -> Iterator[Kafka]:
    if OUTSIDE:
        admin = Admin(OUTSIDE)
        admin.living_brokers()  # fail now if there is none
        yield Kafka(OUTSIDE, admin)
        admin.delete_created()
    elif IN_DOCKER:
        with _container() as bootstrap_servers:
            yield Kafka(bootstrap_servers, Admin(bootstrap_servers))
    else:
        with KafkaCluster(VERSION, config=KEEPING) as cluster:
            yield _of(cluster)


@pytest.fixture(scope="session")
def real_kafka3() -> Iterator[Kafka]:
    if OUTSIDE:
        pytest.skip("SHARECONS_TEST_BOOTSTRAP names a Kafka whose brokers must live")
    with KafkaCluster(VERSION, brokers=3, config=KEEPING) as cluster:
        yield _of(cluster)


_REAL: Final = pytest.param("kafka", marks=pytest.mark.kafka)
_PARAMS: Final[Mapping[str, list[Any]]] = {
    "kafka": [_REAL],
    "embedded": ["embedded"],
    "both": [_REAL, "embedded"],
}
HALVES: Final = _PARAMS[BROKERS]


@pytest.fixture(scope="session", params=HALVES)
def any_kafka(request: pytest.FixtureRequest) -> Kafka:
    """One broker: a real one, then the embedded one."""
    found: Kafka = request.getfixturevalue(_NAMES[request.param])
    return found


@pytest.fixture(scope="session", params=HALVES)
def any_kafka3(request: pytest.FixtureRequest) -> Kafka:
    """Three brokers: real ones, then embedded ones."""
    found: Kafka = request.getfixturevalue(f"{_NAMES[request.param]}3")
    return found


_NAMES: Final = {"kafka": "real_kafka", "embedded": "embedded_kafka"}


@pytest.fixture(scope="session")
def embedded_kafka() -> Iterator[Kafka]:
    """The embedded broker, in a thread, with the settings of the real one."""
    with _embedded(1) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def embedded_kafka3() -> Iterator[Kafka]:
    """Three embedded brokers."""
    with _embedded(3) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def kafka(real_kafka: Kafka) -> Kafka:
    """One real broker for all tests, each with its own topics and groups."""
    return real_kafka


@pytest.fixture(scope="session")
def kafka3(real_kafka3: Kafka) -> Kafka:
    """Three real brokers. Brokers that a test stops are started again after it."""
    return real_kafka3


@pytest.fixture(autouse=True)
def _heal_kafka3(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "kafka3" in request.fixturenames:
        with suppress(pytest.skip.Exception):  # no such cluster: the test was skipped
            cluster = request.getfixturevalue("kafka3").cluster
            if missing := cluster.brokers.keys() - cluster.running:
                cluster.start_broker(*missing)


def _of(cluster: KafkaCluster) -> Kafka:
    servers = cluster.bootstrap_servers
    return Kafka(servers, Admin(servers), cluster)


FAST_ASSIGNMENT: Final = {"group.share.assignment.interval.ms": "100"}
"""Saves a second for each member that joins; the real Kafka has the default."""


@contextmanager
def _embedded(brokers: int) -> Iterator[Kafka]:
    with EmbeddedBroker(
        brokers=brokers, settings={**TEST_SETTINGS, **FAST_ASSIGNMENT}
    ) as broker:
        admin, cluster = EmbeddedAdmin(broker), EmbeddedCluster(broker)
        yield Kafka(broker.bootstrap_servers, admin, cluster, EMBEDDED)


@contextmanager
def _container() -> Iterator[str]:
    """Run Kafka's own image of 4.2 or newer: in 4.1, share groups are disabled.

    testcontainers' KafkaContainer starts only another company's image. The port is the
    same inside and outside, because the broker also connects to itself.
    """
    (port,) = free_ports(1)
    containers = import_module("testcontainers.core.container")
    container = containers.DockerContainer(f"apache/kafka:{VERSION}")
    container.with_bind_ports(port, port)
    for name, value in _container_settings(port).items():
        container.with_env(f"KAFKA_{name.upper().replace('.', '_')}", value)
    with container:
        _result("the container", lambda: registered_brokers((HOST, port)) or None, 120)
        yield f"{HOST}:{port}"


def _container_settings(port: int) -> dict[str, str]:
    return {
        **defaults(1),
        **KEEPING,
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"PLAINTEXT://:{port},CONTROLLER://:9093",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
    }


def _queued(producer: Producer, topic: str, what: Mapping[str, Any]) -> None:
    while True:
        producer.poll(0)
        try:
            producer.produce(topic, **what)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _denial(kind: Callable[..., Any], topic: str) -> Any:
    what = (confluent.AclOperation.ALL, confluent.AclPermissionType.DENY)
    return kind(*_literal(topic), "User:ANONYMOUS", "*", *what)


def _allowance(kind: Callable[..., Any], topic: str) -> Any:
    what = (confluent.AclOperation.DESCRIBE, confluent.AclPermissionType.ALLOW)
    return kind(*_literal(topic), "User:ANONYMOUS", "*", *what)


def _literal(topic: str) -> tuple[Any, ...]:
    pattern = confluent.ResourcePatternType.LITERAL
    return (confluent.ResourceType.TOPIC, topic, pattern)


def _is_denied(address: Address, topic: str) -> bool:
    (found,) = _metadata(address, topic).topics
    return found.error_code is ErrorCode.topic_authorization_failed


def _is_group_denied(address: Address, group: str) -> bool:
    request = FindCoordinatorRequest(coordinator_keys=(group,))
    response = send_request(address, request, FindCoordinatorResponse)
    found = response.coordinators[0]
    return found.error_code is ErrorCode.group_authorization_failed


def _is_readable(address: Address, topic: str) -> bool:
    (found,) = _metadata(address, topic).topics
    return bool(found.topic_authorized_operations & 1 << READ)


def _has_leaders(address: Address, topic: str) -> bool:
    leaders = _leaders(address, topic)
    return bool(leaders) and all(leader >= 0 for leader in leaders.values())


def _leaders(address: Address, topic: str) -> dict[int, int]:
    found = _topic(address, topic)
    partitions = found.partitions if found else ()
    return {int(each.partition_index): int(each.leader_id) for each in partitions}


def _replicas(address: Address, topic: str) -> dict[int, list[int]]:
    found = _topic(address, topic)
    partitions = found.partitions if found else ()
    return {int(p.partition_index): list(map(int, p.replica_nodes)) for p in partitions}


def _topic(address: Address, topic: str) -> MetadataResponseTopic | None:
    (found,) = _metadata(address, topic).topics
    return None if found.error_code else found


def _metadata(address: Address, topic: str | None) -> MetadataResponse:
    requested = MetadataRequestTopic(topic_id=None, name=TopicName(topic or ""))
    request = MetadataRequest(
        topics=(requested,) if topic else (),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    return send_request(address, request, MetadataResponse)


def _group_config(address: Address, group: str) -> dict[str, str | None]:
    resource = description.DescribeConfigsResource(
        resource_type=GROUP, resource_name=group, configuration_keys=None
    )
    request = description.DescribeConfigsRequest(resources=(resource,))
    response = send_request(address, request, DescribeConfigsResponse)
    _check(response.results[0])
    return {config.name: config.value for config in response.results[0].configs}


def _skip_without_config(response: Any) -> None:
    """Skip a test of a group config that this Kafka does not have yet."""
    is_older = [*map(int, VERSION.split("."))] < [*map(int, EMBEDDED.split("."))]
    if is_older and "Unknown group config name" in (response.error_message or ""):
        pytest.skip(f"Kafka {VERSION}: {response.error_message}")


def _check(response: Any) -> None:
    code = response.error_code
    assert not code, (
        f"Kafka rejected the request: {code.name}: {response.error_message}"
    )


def send_request(
    address: Address, request: Any, response: type[ResponseT]
) -> ResponseT:
    """Send a request on a new connection, and return the decoded response."""
    frame = io.BytesIO()
    header = RequestHeader(
        request_api_key=i16(request.__api_key__),
        request_api_version=i16(request.__version__),
        correlation_id=i32(1),
        client_id="sharecons-tests",
    )
    entity_writer(RequestHeader)(frame, header)
    entity_writer(type(request))(frame, request)
    content = frame.getvalue()
    with socket.create_connection(address, timeout=TIMEOUT) as connection:
        connection.sendall(len(content).to_bytes(4, "big") + content)
        with connection.makefile("rb") as stream:
            received = stream.read(int.from_bytes(stream.read(4), "big"))
    # The body comes after the correlation id and an empty set of tagged fields.
    entity: ResponseT = reader(response)(received, 5)[0]
    return entity


def _listens(address: Address) -> bool:
    try:
        socket.create_connection(address, timeout=TIMEOUT).close()
    except OSError:
        return False
    return True


def make_change(
    send: Callable[[], Mapping[Any, Future[Any]]], done: int | None = None
) -> None:
    """Send a change, and wait for its result.

    It is sent again if librdkafka forgets the broker, because a test has stopped it.
    Then `done` is the error of a change that has been made already.
    """
    for attempt in range(1, ATTEMPTS + 1):
        (future,) = send().values()
        try:
            future.result(TIMEOUT)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError._DESTROY_BROKER and attempt < ATTEMPTS:
                continue
            if attempt == 1 or code != done:
                raise
        return


def _result(
    what: str, read: Callable[[], ResponseT | None], timeout: float = TIMEOUT
) -> ResponseT:
    """Call `read` until its result is not None, and return the result."""

    def attempt() -> list[ResponseT]:
        # Some tests stop a broker, which can break this request's connection.
        with suppress(OSError):
            if (result := read()) is not None:
                return [result]
        return []

    return until_true(attempt, timeout, what=what, pause=PAUSE)[0]
