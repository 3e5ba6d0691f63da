"""confluent-kafka-python's ShareConsumer (librdkafka), which polls and blocks."""

import argparse
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from importlib import import_module
from typing import Any, Final

from tests.bench.clients.common import (
    JOIN_TIMEOUT,
    JoinError,
    Limit,
    Meter,
    Tally,
    WarmUp,
    arguments,
    percentiles,
    print_result,
)

# Its type stubs lack ShareConsumer.
confluent: Any = import_module("confluent_kafka")

POLL: Final = 0.5  # seconds; poll returns as soon as there are records


def throughput(options: argparse.Namespace) -> object:
    meter, tally = Meter(), Tally(options.records)
    if options.consumers > 1:
        return _read_concurrently(options, meter, tally)
    deadline = time.monotonic() + options.timeout
    with closing(_consumer(options)) as consumer:
        count, size = 0, 0
        while count < tally.wanted and time.monotonic() < deadline:
            messages = consumer.poll(POLL)  # accepts the records of the previous one
            if messages:
                meter.on_first_record()
            for message in messages:
                size += len(message.value())
                count += 1
        tally.add(count, size)
        report = meter.report(tally)
        consumer.commit_sync()  # accepts the last records; not measured
        return report


def latency(options: argparse.Namespace) -> object:
    ages: list[int] = []
    with closing(_consumer(options)) as consumer:
        deadline = time.monotonic() + options.timeout
        if _wait_for_first(consumer, deadline):
            print_result({"joined": True})
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
    """Run two members in threads; the first that gets a record releases it.

    They commit after every poll, which gives the fastest redelivery.
    """
    released: dict[tuple[int, int], float] = {}
    latencies: list[float] = []
    deadline = time.monotonic() + options.timeout
    warm = WarmUp(options.warm_up)

    def work(consumer: Any) -> None:
        while len(latencies) < options.records and time.monotonic() < deadline:
            messages = consumer.poll(POLL)
            for message in messages:
                now, where = (
                    time.perf_counter(),
                    (message.partition(), message.offset()),
                )
                if where in released:
                    latencies.append(now - released[where])
                elif warm.is_over():
                    released[where] = time.perf_counter()
                    consumer.acknowledge(message, confluent.AcknowledgeType.RELEASE)
                    continue
                consumer.acknowledge(message)
            if messages:
                consumer.commit_async()

    _run_in_threads([_consumer(options) for _ in range(2)], work)
    return {**percentiles(latencies), "records": len(latencies)}


def _read_concurrently(
    options: argparse.Namespace, meter: Meter, tally: Tally
) -> object:
    """Run several consumers, each in a thread, see `Meter.restart`."""
    deadline = time.monotonic() + options.timeout
    reports: list[object] = []
    joined = 0
    limit = Limit(tally.wanted, meter, lambda: reports.append(meter.report(tally)))

    def join(consumer: Any) -> None:
        nonlocal joined
        end = time.monotonic() + JOIN_TIMEOUT
        while not (messages := consumer.poll(POLL)) and time.monotonic() < end:
            pass
        if not messages:
            everyone.abort()  # the others then stop waiting
        meter.on_first_record()
        with lock:
            tally.add(len(messages), sum(len(each.value()) for each in messages))
            joined += bool(messages)
        everyone.wait(JOIN_TIMEOUT)

    def work(consumer: Any) -> None:
        join(consumer)
        while tally.count < tally.wanted and time.monotonic() < deadline:
            messages = consumer.poll(POLL)
            count = size = 0
            for message in messages:
                size += len(message.value())
                count += 1
            with lock:
                tally.add(count, size)
                if tally.count >= limit.count:
                    limit.reached(tally.count, tally.size)

    lock = threading.Lock()
    everyone = threading.Barrier(options.consumers)
    _run_in_threads([_consumer(options) for _ in range(options.consumers)], work)
    if joined < options.consumers:
        raise JoinError(joined, options.consumers)
    return reports[0] if reports else meter.report(tally)


def _run_in_threads(consumers: Iterable[Any], work: Callable[[Any], None]) -> None:
    """Run `work` with each consumer in its own thread, and close it there."""

    def run_and_close(consumer: Any) -> None:
        with closing(consumer):
            work(consumer)

    threads = [
        threading.Thread(target=run_and_close, args=(each,)) for each in consumers
    ]
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
    is_explicit = options.what == "redelivery"
    max_bytes = {"fetch.max.bytes": options.max_bytes} if options.max_bytes else {}
    consumer = confluent.ShareConsumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "max.poll.records": options.max_records,
            "check.crcs": options.check_crcs,  # the default is false
            **max_bytes,
            "share.acknowledgement.mode": "explicit" if is_explicit else "implicit",
        }
    )
    consumer.subscribe([options.topic])
    return consumer


def main() -> None:
    options = arguments()
    workloads: Mapping[str, Callable[[argparse.Namespace], object]] = {
        "throughput": throughput,
        "latency": latency,
        "redelivery": redelivery,
    }
    print_result(workloads[options.what](options))


if __name__ == "__main__":
    main()
