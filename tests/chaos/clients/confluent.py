"""A process that consumes with confluent-kafka-python, for comparison.

python -m tests.chaos.clients.confluent JSON
"""

import json
import signal
import sys
import time
from contextlib import closing
from importlib import import_module
from typing import Any, Final

from tests.chaos.clients import Options
from tests.chaos.journal import Journal

# Its type stubs lack ShareConsumer.
confluent: Any = import_module("confluent_kafka")

POLL: Final = 0.5  # seconds; poll returns as soon as there are records


def main(options: Options) -> None:
    journal = Journal(options.journal)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    consumer = confluent.ShareConsumer(
        {
            "bootstrap.servers": options.servers,
            "group.id": options.group,
            "client.id": options.client_id,
            "share.acknowledgement.mode": "implicit",
        }
    )
    consumer.subscribe([options.topic])
    with closing(consumer):
        journal.note("started")
        while not stopped:
            try:
                messages = consumer.poll(POLL)
            except confluent.KafkaException as error:
                sys.stderr.write(f"{error}\n")
                continue
            for message in messages:
                if message.error():
                    sys.stderr.write(f"{message.error()}\n")
                    continue
                time.sleep(options.seconds)  # real time: a handler's work
                at = message.topic(), message.partition(), message.offset(), 0
                journal.note("handled", int(message.value()), *at)
        consumer.commit_sync()


if __name__ == "__main__":
    main(Options(**json.loads(sys.argv[1])))
