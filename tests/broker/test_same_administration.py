"""The same admin requests to three real brokers and to three embedded ones."""

import time
import uuid
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum

import pytest

from tests.broker.blocking_client import BlockingClient

pytestmark = pytest.mark.kafka

TIMEOUT = 20.0  # seconds until every real broker knows of a change
READING = ("metadata", "describe_acls", "describe_cluster")
BY_HAND = {"num_partitions": -1, "replication_factor": -1}
SOON = {"timeout": timedelta(seconds=TIMEOUT)}
NEW = {"num_partitions": 1, "replication_factor": 1, "assignments": []}
WHO = {"cluster_id", "controller_id", "port", "config_source"}
"""Fields that differ between any two clusters."""

UNORDERED = {"topics", "responses", "resources", "acls", "isr_nodes", "matching_acls"}


def create_topic(name, version=7, **topic):
    topics = [{**NEW, "name": name, "configs": [], **topic}]
    return "create_topics", version, {"topics": topics}


def create_topic_on(name, *replicas):
    places = [
        {"partition_index": index, "broker_ids": nodes}
        for index, nodes in enumerate(replicas)
    ]
    return create_topic(name, **BY_HAND, assignments=places)


def create_topic_with(name, **configs):
    pairs = [
        {"name": key.replace("_", "."), "value": value}
        for key, value in configs.items()
    ]
    return create_topic(name, configs=pairs)


def metadata(*names, version=12, **values):
    topics = [{"name": name} for name in names]
    flags = {"allow_auto_topic_creation": False} if version >= 4 else {}
    return "metadata", version, {"topics": topics, **flags, **values}


def create_partitions(name, count, *replicas):
    by_hand = [{"broker_ids": nodes} for nodes in replicas] or None
    topic = {"name": name, "count": count, "assignments": by_hand}
    return "create_partitions", 3, {"topics": [topic], **SOON}


def delete_topics(*names):
    topics = [{"name": name, "topic_id": None} for name in names]
    return "delete_topics", 6, {"topics": topics, **SOON}


def create_acl(name, operation=2, permission=2, pattern=3, principal="User:ANONYMOUS"):
    creation = {
        "resource_type": 2,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": principal,
        "host": "*",
        "operation": operation,
        "permission_type": permission,
    }
    return "create_acls", 3, {"creations": [creation]}


def acl_filter(name):
    return {
        "resource_type_filter": 2,
        "resource_name_filter": name,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }


def delete_acls(name):
    return "delete_acls", 3, {"filters": [acl_filter(name)]}


def requests(own):
    """Return requests; all names begin with `own`, since tests share the brokers."""
    topic, alone, other = f"{own}-t", f"{own}-alone", f"{own}-other"
    yield create_topic_on(topic, [3, 1], [2, 3], [1, 2])
    for version in range(14):
        yield metadata(topic, f"{own}-nope", "a b", version=version)
    for version in range(2, 8):
        yield create_topic(topic, version)
    yield create_topic_on(f"{own}.dot", [1])
    yield metadata(f"{own}.dot")
    yield create_topic(f"{own}_dot")
    for name in ("", ".", "a b", "x" * 250, "__cluster_metadata"):
        yield create_topic(name)
    for wrong in ({"num_partitions": 0}, {"replication_factor": 4}):
        yield create_topic(other, **wrong)
    for replicas in ([[9]], [[1, 1]], [[]], [[1], [1, 2]]):
        yield create_topic_on(other, *replicas)
    for value in ("x", "-7", None):
        yield create_topic_with(other, retention_ms=value)
    yield create_topic_with(other, nonsense="1")
    yield create_topic_on(alone, [3])
    yield metadata(alone, alone, include_topic_authorized_operations=True)

    for count, *replicas in ((1,), (0,), (2, [1, 2]), (3, [1]), (2, [9]), (2, [2])):
        yield create_partitions(alone, count, *replicas)
    yield create_partitions(f"{own}-nope", 3)
    yield metadata(alone)

    for rule in ({"operation": 3}, {"operation": 4, "permission": 3}, {"pattern": 4}):
        yield create_acl(topic, **rule)
        yield metadata(topic, alone, include_topic_authorized_operations=True)
        yield "describe_acls", 3, acl_filter(topic)
        yield delete_acls(topic)
        yield metadata(topic)
    yield create_acl(topic, principal="unknown")
    yield create_acl(topic, pattern=2)
    yield create_acl(other)
    yield "describe_acls", 3, acl_filter(other)
    yield create_topic(other)
    yield metadata(other)
    yield delete_acls(other)
    yield delete_topics(topic, topic, f"{own}-nope")
    yield delete_topics(topic, alone, other, f"{own}.dot")
    yield metadata(topic, alone, other)


def send(bootstrap_servers, step):
    api, version, values = step
    with BlockingClient(bootstrap_servers) as client:
        return comparable(client.request(api, version, **values))


def comparable(response, name=""):
    if is_dataclass(response):
        return {
            field.name: comparable(getattr(response, field.name), field.name)
            for field in fields(response)
            if field.name not in WHO
        }
    if isinstance(response, tuple):
        values = [comparable(each) for each in response]
        return sorted(values, key=repr) if name in UNORDERED else values
    if isinstance(response, uuid.UUID):
        return "an id"
    return response.name if isinstance(response, Enum) else response


def test_same_requests_get_same_responses(kafka3, embedded_kafka3):
    for step in requests(f"admin-{uuid.uuid4().hex[:8]}"):
        embedded = send(embedded_kafka3.bootstrap_servers, step)
        real = send(kafka3.bootstrap_servers, step)
        deadline = time.monotonic() + TIMEOUT
        # Brokers learn of the controller's changes; then all responses must be equal.
        while embedded != real and step[0] in READING and time.monotonic() < deadline:
            time.sleep(0.05)  # real time: three brokers work meanwhile
            real = send(kafka3.bootstrap_servers, step)

        assert real == embedded, step
