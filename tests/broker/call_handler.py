"""Calls a handler directly: no connection, no loop, only a cluster's state."""

from dataclasses import fields

from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import Header, encode_response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.hangs import Pause
from sharecons.testing.broker.signals import Signal
from tests.broker.messages import API_KEYS, decode_response, make_request

__all__ = ["Connection", "call_api", "failures", "handle", "make_cluster"]

SETTINGS = {"auto.create.topics.enable": "false"}


class Connection:
    """A client's connection that can be closed."""

    def __init__(self):
        self.is_closed = False
        self.changed = Signal()
        self.pause = Pause()

    def close(self):
        self.is_closed = True
        self.changed.notify()


def make_cluster(brokers=3, **settings):
    """Return a cluster whose brokers all run."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    nodes = [
        Broker(node_id, "localhost", 9091 + node_id)
        for node_id in range(1, brokers + 1)
    ]
    cluster = Cluster(nodes, {**SETTINGS, **dotted})
    for node_id in list(cluster.brokers):
        cluster.broker_started(node_id)
    return cluster


def call_api(cluster, api, version, **values):
    """Call a handler of broker 1, and return its response; see `handle`."""
    request = make_request(api, version, **values)
    unknown = values.keys() - {field.name for field in fields(request)}
    assert not unknown, f"{api} {version} has no {unknown}"
    header = Header(API_KEYS[api], version, 1, "test")
    return handle(request, Context(header, cluster, 1, None))


def handle(request, context):
    """Call a handler, and return its response after encoding and decoding.

    Only for handlers that return without waiting.
    """
    header = context.header
    work = APIS[header.api_key].handle(request, context)
    try:
        work.send(None)
    except StopIteration as done:
        frame = encode_response(header, done.value, header.version)
        return decode_response(frame[4:], header.api_key, header.version)
    raise AssertionError(f"the handler waits: {request}")


def failures(results):
    """Return error codes by name, with messages."""
    return [(each.error_code.name, each.error_message) for each in results]
