"""The embedded broker and a real Kafka behind one interface.

The embedded broker runs without an event loop, on a clock that only tests move.

@pytest.fixture(params=BOTH)
def either(request):
    return either_broker(request)
"""

import socket
import time
import typing
import uuid
from dataclasses import MISSING, fields, is_dataclass

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader

from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import Header, encode_response
from sharecons.testing.broker.context import Context
from tests.broker.async_client import request_bytes

__all__ = ["BOTH", "Embedded", "either_broker"]

KEYS = {name: key for key, name in api_key_map.items()}
WARM = set()
BOTH = ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)]


class ClockedContext(Context):
    @property
    def now(self):
        return self.connection.now


class Embedded:
    """A cluster whose brokers run, and a client of it that never waits."""

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
        self.now += seconds

    def create_topic(self, partitions=1, config=None):
        name = f"topic-{uuid.uuid4().hex[:8]}"
        self.cluster.add_topic(name, [[1]] * partitions, config)
        return name

    def find(self, group):
        """Do nothing: a coordinator always exists."""

    def request(self, api, version, node_id=1, **values):
        header = Header(KEYS[api], version, 1, "test")
        context = ClockedContext(header, self.cluster, node_id, self)
        work = APIS[KEYS[api]].handle(request_of(api, version, values), context)
        try:
            work.send(None)
        except StopIteration as done:
            frame = encode_response(header, done.value, version)
            return read(api, version, frame[4:])
        raise AssertionError(f"{api} waits")


class RealKafka:
    """A real Kafka, which takes time until its state is visible."""

    def __init__(self, kafka):
        self._kafka = kafka
        if kafka.bootstrap_servers not in WARM:
            WARM.add(kafka.bootstrap_servers)
            self._warm_up()

    def sleep(self, seconds):
        time.sleep(seconds)

    def create_topic(self, partitions=1, config=None):
        name = self._kafka.admin.create_topic(partitions, config=config)
        time.sleep(0.3)  # the coordinator may learn of it later than other brokers
        return name

    def find(self, group):
        """Wait until the group has a coordinator that has loaded its log."""
        self._kafka.admin.group_coordinator(group)
        while self._beat(group, 5).error_code.name != "group_id_not_found":
            time.sleep(0.1)

    def request(self, api, version, **values):
        host, _, port = self._kafka.bootstrap_servers.split(",")[0].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(request_bytes(request_of(api, version, values)))
            with connection.makefile("rb") as stream:
                frame = stream.read(int.from_bytes(stream.read(4), "big"))
        return read(api, version, frame)

    def _warm_up(self):
        """Make it create its internal topics: the first share group waits for them."""
        topic, group = self.create_topic(), f"group-{uuid.uuid4().hex[:8]}"
        self.find(group)
        while not (
            response := self._beat(group, 0, [topic])
        ).assignment.topic_partitions:
            assert not response.error_code
            time.sleep(0.1)

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


def read(api, version, frame):
    kind = load_response_schema(KEYS[api], version)
    _, size = entity_reader(kind.__header_schema__)(frame, 0)
    return entity_reader(kind)(frame, size)[0]


def request_of(api, version, values):
    return built(load_request_schema(KEYS[api], version), values)


def built(kind, values):
    """Return an entity from mappings; absent fields are null, false or empty."""
    return kind(
        **{
            field.name: convert_value(field.type, values.get(field.name))
            for field in fields(kind)
            if field.name in values or field.default is MISSING
        }
    )


def convert_value(declared, value):
    kinds = (declared, *typing.get_args(declared))
    array = next((each for each in kinds if typing.get_origin(each) is tuple), None)
    if array is None or (value is None and type(None) in kinds):
        struct = next(filter(is_dataclass, kinds), None)
        if struct and value is not None:
            return built(struct, value)
        return bool(value) if declared is bool else value
    inner = typing.get_args(array)[0]
    return tuple(
        built(inner, one) if is_dataclass(inner) else one for one in value or ()
    )
