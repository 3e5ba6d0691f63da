"""Calls a handler directly: no connection, no loop, only a cluster's state."""

from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from types import NoneType
from typing import get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader

from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import Header, encode_response
from sharecons.testing.broker.context import Context

__all__ = ["call_api", "failures", "make_cluster"]

KEYS = {name: key for key, name in api_key_map.items()}
SETTINGS = {"auto.create.topics.enable": "false"}


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
    """Call a handler, and return its response after encoding and decoding.

    Absent fields of the request are empty. Only for handlers that never wait.
    """
    key = KEYS[api]
    header = Header(key, version, 1, "test")
    request = built(load_request_schema(key, version), values)
    work = APIS[key].handle(request, Context(header, cluster, 1, None))
    try:
        work.send(None)
    except StopIteration as done:
        return on_the_wire(header, done.value)
    raise AssertionError(f"{api} waits")


def on_the_wire(header, response):
    frame = encode_response(header, response, header.version)[4:]
    kind = load_response_schema(header.api_key, header.version)
    _, size = entity_reader(kind.__header_schema__)(frame, 0)
    return entity_reader(kind)(frame, size)[0]


def built(kind, values):
    """Return an entity from mappings."""
    known = {field.name: field for field in fields(kind)}
    assert values.keys() <= known.keys(), f"{kind.__name__} has no {values.keys()}"
    return kind(
        **{
            name: convert_value(field, values[name])
            if name in values
            else default_value(field)
            for name, field in known.items()
            if name in values or field.default is MISSING
        }
    )


def convert_value(field, value):
    if isinstance(value, list | tuple):
        inner = struct_in(field.type)
        return tuple(built(inner, one) if inner else one for one in value)
    return value


def default_value(field):
    kind = field.metadata.get("kafka_type", "")
    if kind.startswith("timedelta"):
        return timedelta(0)
    if NoneType in get_args(field.type):
        return None
    if get_origin(field.type) is tuple:
        return ()
    return {"bool": False, "string": ""}.get(kind, 0)


def struct_in(declared):
    if is_dataclass(declared):
        return declared
    return next(filter(None, map(struct_in, get_args(declared))), None)


def failures(results):
    """Return error codes by name, with messages."""
    return [(each.error_code.name, each.error_message) for each in results]
