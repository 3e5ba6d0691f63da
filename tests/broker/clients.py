"""librdkafka's clients, for tests on a real Kafka and on the embedded one."""

import logging
import time
import uuid
from contextlib import ExitStack, closing

from confluent_kafka import Consumer, Producer

from tests.kafka_plugin import EmbeddedCluster

__all__ = ["PATIENCE", "Clients", "new_name", "read", "until"]

PATIENCE = 20.0


def new_name(kind):
    return f"{kind}-{uuid.uuid4().hex[:8]}"


def until(what, holds, step=lambda: time.sleep(0.02), patience=PATIENCE):
    """Repeat a step until `holds()` returns something true; return that."""
    deadline = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not so in {patience:g} s: {what}"
        step()
    return found


def read(consumer, count, patience=PATIENCE):
    """Poll until `count` records have arrived; return them."""
    records = []

    def poll():
        for message in consumer.consume(count - len(records), 0.1):
            assert message.error() is None, message.error()
            records.append(message)

    until(f"{count} records", lambda: len(records) >= count, poll, patience)
    return records


class Clients:
    """Creates clients of one Kafka, and closes them.

    Their log messages are kept as complaints. A real Kafka that has just started causes
    some, while its coordinators load; the embedded one must cause none.
    """

    def __init__(self, kafka):
        self.bootstrap_servers = kafka.bootstrap_servers
        self._is_embedded = isinstance(kafka.started, EmbeddedCluster)
        self.complaints = []
        self._stack = ExitStack()
        self._logger = logging.Logger("librdkafka")
        self._logger.addHandler(_Keeper(self.complaints))

    def settings(self, **config):
        named = {name.replace("_", "."): value for name, value in config.items()}
        return {"bootstrap.servers": self.bootstrap_servers, **named}

    def producer(self, **config):
        return Producer(self.settings(**config), logger=self._logger)

    def consumer(self, group=None, **config):
        settings = self.settings(
            group_id=group or new_name("group"),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
        )
        consumer = Consumer(
            {**settings, **self.settings(**config)}, logger=self._logger
        )
        return self._stack.enter_context(closing(consumer))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._stack.close()
        if kind is None and self._is_embedded:
            assert [] == self.complaints


class _Keeper(logging.Handler):
    def __init__(self, lines):
        super().__init__()
        self._lines = lines

    def emit(self, record):
        self._lines.append(record.getMessage())
