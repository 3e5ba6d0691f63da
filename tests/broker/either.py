"""The embedded broker and a real Kafka behind one interface.

The embedded broker runs without an event loop, on a clock that only tests move.

@pytest.fixture(params=BOTH)
def either(request):
    return either_broker(request)
"""

import time
import uuid

import pytest

from sharecons.testing.broker.acls import Acl, Operation, Pattern, Permission
from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import Header
from sharecons.testing.broker.context import Context
from tests.broker.blocking_client import BlockingClient
from tests.broker.call_handler import handle
from tests.broker.messages import API_KEYS, make_request
from tests.waiting import until_true

__all__ = [
    "BOTH",
    "ClockedContext",
    "Embedded",
    "RealKafka",
    "becoming",
    "either_broker",
]

WARM = set()
BOTH = ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)]


class ClockedContext(Context):
    @property
    def now(self):
        return self.connection.now


def becoming(either, expected, read):
    """Read until the value is the expected one; return the last one after 10 s.

    A broker responds to a change before it has it.
    """
    for _ in range(100):
        if (found := read()) == expected:
            break
        either.sleep(0.1)
    return found


class Embedded:
    """A cluster whose brokers run, and a client that calls their handlers."""

    peer = "/127.0.0.1"

    def __init__(self, brokers=1, settings=None):
        nodes = [
            Broker(node, "localhost", 9091 + node) for node in range(1, brokers + 1)
        ]
        self.cluster = Cluster(nodes, settings)
        for node in nodes:
            self.cluster.broker_started(node.node_id)
        self.now = 0.0

    def sleep(self, seconds):
        """Move the clock; this takes no time."""
        self.now += seconds

    def create_topic(self, partitions=1, config=None):
        name = f"topic-{uuid.uuid4().hex[:8]}"
        self.cluster.add_topic(name, [[1]] * partitions, config)
        return name

    def find(self, group):
        """Do nothing: a coordinator always exists."""

    def deny(self, resource, name, operation=Operation.ALL):
        """Deny an operation on a resource to the client."""
        self._add_acl(resource, name, operation, Permission.DENY)

    def deny_only(self, resource, name, operation):
        """Deny one operation on a resource, and allow the others.

        A resource with ACLs denies all operations that no ACL allows.
        """
        self._add_acl(resource, name, operation, Permission.DENY)
        self._add_acl(resource, name, Operation.ALL, Permission.ALLOW)

    def _add_acl(self, resource, name, operation, permission):
        self.cluster.authorizer.add(
            Acl(
                resource=resource,
                name=name,
                pattern=Pattern.LITERAL,
                principal="User:ANONYMOUS",
                host="*",
                operation=operation,
                permission=permission,
            )
        )

    def request(self, api, version, node_id=1, **values):
        """Send a request to a broker, and return its response."""
        header = Header(API_KEYS[api], version, 1, "test")
        context = ClockedContext(header, self.cluster, node_id, self)
        return handle(make_request(api, version, **values), context)


class RealKafka:
    """A real Kafka, which takes time until its state is visible."""

    def __init__(self, kafka):
        self._kafka = kafka
        if kafka.bootstrap_servers not in WARM:
            WARM.add(kafka.bootstrap_servers)
            self._warm_up()

    def sleep(self, seconds):
        time.sleep(seconds)  # real time: a real Kafka works meanwhile

    def create_topic(self, partitions=1, config=None):
        name = self._kafka.admin.create_topic(partitions, config=config)
        self.sleep(0.3)  # the coordinator can be the last broker with the metadata
        return name

    def find(self, group):
        """Wait until the group has a coordinator that has loaded its log."""
        self._kafka.admin.group_coordinator(group)
        until_true(
            lambda: self._beat(group, 5).error_code.name == "group_id_not_found",
            what=f"the coordinator of {group} has loaded",
        )

    def request(self, api, version, **values):
        with BlockingClient(self._kafka.bootstrap_servers) as client:
            return client.request(api, version, **values)

    def _warm_up(self):
        """Create the internal topics: the first share group waits for them."""
        topic, group = self.create_topic(), f"group-{uuid.uuid4().hex[:8]}"
        self.find(group)

        def has_partitions():
            response = self._beat(group, 0, [topic])
            assert not response.error_code
            return response.assignment.topic_partitions

        until_true(has_partitions, what="the first share group has partitions")

    def _beat(self, group, epoch, topics=None):
        return self.request(
            "share_group_heartbeat",
            1,
            group_id=group,
            member_id="warm",
            member_epoch=epoch,
            subscribed_topic_names=topics,
        )


def either_broker(request):
    if request.param == "embedded":
        return Embedded()
    return RealKafka(request.getfixturevalue("kafka"))
