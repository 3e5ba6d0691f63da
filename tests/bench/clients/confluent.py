"""confluent-kafka-python's ShareConsumer (librdkafka): it polls, and is not async."""

import argparse
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from importlib import import_module
from typing import Any, Final

from tests.bench.clients.common import (
    Meter,
    Tally,
    WarmUp,
    arguments,
    percentiles,
    said,
)

# Its stubs know no share consumer.
confluent: Any = import_module("confluent_kafka")

POLL: Final = 0.5  # seconds; it returns as soon as there are records


def throughput(options: argparse.Namespace) -> object:
    meter, tally = Meter(), Tally(options.records)
    if options.consumers > 1:
        return _together(options, meter, tally)
    with closing(_consumer(options)) as consumer:
        read = explicit if options.mode == "explicit" else implicit
        read(consumer, tally, meter, time.monotonic() + options.patience)
        report = meter.report(tally)
        consumer.commit_sync()  # accepts the last; not counted, as closing is not
        return report


def implicit(consumer: Any, tally: Tally, meter: Meter, deadline: float) -> None:
    """Each poll accepts what the poll before gave."""
    count, size, wanted = 0, 0, tally.wanted
    while count < wanted and time.monotonic() < deadline:
        messages = consumer.poll(POLL)
        if messages:
            meter.first()
        for message in messages:
            size += len(message.value())
            count += 1
    tally.add(count, size)


def explicit(consumer: Any, tally: Tally, meter: Meter, deadline: float) -> None:
    count, size, wanted = 0, 0, tally.wanted
    acknowledge = consumer.acknowledge
    while count < wanted and time.monotonic() < deadline:
        messages = consumer.poll(POLL)
        if messages:
            meter.first()
        for message in messages:
            size += len(message.value())
            acknowledge(message)
            count += 1
    tally.add(count, size)


def latency(options: argparse.Namespace) -> object:
    ages: list[int] = []
    with closing(_consumer(options)) as consumer:
        deadline = time.monotonic() + options.patience
        if _wait_for_first(consumer, deadline):
            said({"joined": True})
            warm = time.time_ns() + int(options.warm_up * 1e9)
            end = warm + int(options.seconds * 1e9)
            while time.time_ns() < end:
                for message in consumer.poll(POLL):
                    now = time.time_ns()
                    if warm <= now < end:
                        ages.append(now - int(message.value()[:19]))
    seconds = percentiles([age / 1e9 for age in ages])
    return {**seconds, "rate": len(ages) / options.seconds}


def redelivery(options: argparse.Namespace) -> object:
    """Two members, each on a thread; whoever gets a record first releases it.

    Committing at once is the quickest that its user can do.
    """
    released: dict[tuple[int, int], float] = {}
    took: list[float] = []
    deadline = time.monotonic() + options.patience
    warm = WarmUp(options.warm_up)

    def work(consumer: Any) -> None:
        while len(took) < options.records and time.monotonic() < deadline:
            messages = consumer.poll(POLL)
            for message in messages:
                now, where = (
                    time.perf_counter(),
                    (message.partition(), message.offset()),
                )
                if where in released:
                    took.append(now - released[where])
                elif warm.over():
                    released[where] = time.perf_counter()
                    consumer.acknowledge(message, confluent.AcknowledgeType.RELEASE)
                    continue
                consumer.acknowledge(message)
            if messages:
                consumer.commit_async()

    _on_threads([_consumer(options) for _ in range(2)], work)
    return {**percentiles(took), "records": len(took)}


def _together(options: argparse.Namespace, meter: Meter, tally: Tally) -> object:
    """Several consumers, each on a thread; the GIL is all that guards the tally."""
    deadline = time.monotonic() + options.patience
    reports: list[object] = []

    def work(consumer: Any) -> None:
        while tally.count < tally.wanted and time.monotonic() < deadline:
            messages = consumer.poll(POLL)
            if messages:
                meter.first()
            count = size = 0
            for message in messages:
                size += len(message.value())
                count += 1
            with lock:
                tally.add(count, size)
                if tally.count >= tally.wanted and not reports:
                    reports.append(meter.report(tally))

    lock = threading.Lock()
    _on_threads([_consumer(options) for _ in range(options.consumers)], work)
    return reports[0] if reports else meter.report(tally)


def _on_threads(consumers: Iterable[Any], work: Callable[[Any], None]) -> None:
    """Let each consumer work on a thread of its own, and close it there."""

    def whole(consumer: Any) -> None:
        with closing(consumer):
            work(consumer)

    threads = [threading.Thread(target=whole, args=(each,)) for each in consumers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _wait_for_first(consumer: Any, deadline: float) -> bool:
    while time.monotonic() < deadline:
        if consumer.poll(POLL):
            return True
    return False


def _consumer(options: argparse.Namespace) -> Any:
    by_hand = options.mode == "explicit" or options.what == "redelivery"
    consumer = confluent.ShareConsumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "max.poll.records": options.max_records,
            "share.acknowledgement.mode": "explicit" if by_hand else "implicit",
        }
    )
    consumer.subscribe([options.topic])
    return consumer


def main() -> None:
    options = arguments(modes=("implicit", "explicit"))
    works: Mapping[str, Callable[[argparse.Namespace], object]] = {
        "throughput": throughput,
        "latency": latency,
        "redelivery": redelivery,
    }
    said(works[options.what](options))


if __name__ == "__main__":
    main()
