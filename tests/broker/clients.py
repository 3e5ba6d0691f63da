"""librdkafka's clients, for tests on a real Kafka and on the embedded one."""

import logging
import uuid
from contextlib import ExitStack, closing

from confluent_kafka import Consumer, Producer

from tests.kafka_plugin import EmbeddedCluster
from tests.waiting import until_true

__all__ = ["TIMEOUT", "Clients", "new_name", "poll_all", "poll_until", "read"]

TIMEOUT = 20.0


def new_name(kind):
    return f"{kind}-{uuid.uuid4().hex[:8]}"


def poll_until(what, condition, poll, within=TIMEOUT):
    """Call `poll` until the condition returns something true; return that."""

    def polled():
        if not (found := condition()):
            poll()
            found = condition()
        return found

    return until_true(polled, within, what=what, pause=0)


def poll_all(consumers, condition, records=None):
    """Poll consumers until a condition on their records is true; return the records.

    New records are appended to `records`, if given.
    """
    records = [] if records is None else records

    def poll():
        for consumer in consumers:
            message = consumer.poll(0.01)
            if message is not None:
                assert message.error() is None, message.error()
                records.append(message)

    poll_until("the condition", lambda: condition(records), poll)
    return records


def read(consumer, count, within=TIMEOUT):
    """Poll until `count` records have arrived; return them."""
    records = []

    def poll():
        for message in consumer.consume(count - len(records), 0.1):
            assert message.error() is None, message.error()
            records.append(message)

    poll_until(f"{count} records", lambda: len(records) >= count, poll, within)
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
