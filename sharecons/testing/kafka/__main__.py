"""A Kafka in the foreground, for trying out the client; see `--help`."""

import argparse
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final, NoReturn

from sharecons.testing.kafka.admin_requests import create_topic
from sharecons.testing.kafka.cluster import KafkaCluster
from sharecons.testing.kafka.errors import LaunchError
from sharecons.testing.kafka.ports import HOST

CHECK_INTERVAL: Final = 1.0  # seconds between two checks whether the brokers still run
PRODUCER: Final = "org.apache.kafka.tools.ConsoleProducer"
ROUND_ROBIN: Final = "org.apache.kafka.clients.producer.RoundRobinPartitioner"

log = logging.getLogger("sharecons.testing.kafka")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.records and not options.topic:
        parser.error("--records needs --topic")
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, _exit)
    try:
        _run(options)
    except LaunchError as error:
        log.error("%s", error)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sharecons.testing.kafka",
        description="Run a Kafka in the foreground, and delete its data afterwards.",
    )
    parser.add_argument(
        "--version", default="4.3.0", help="version of Kafka (%(default)s)"
    )
    parser.add_argument(
        "--brokers", type=_positive, default=1, help="number of brokers (%(default)s)"
    )
    parser.add_argument(
        "--port", type=int, default=9092, help="port of the first broker (%(default)s)"
    )
    parser.add_argument(
        "--topic",
        type=_topic,
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME:PARTITIONS",
        help="a topic to create",
    )
    parser.add_argument(
        "--records",
        type=_positive,
        default=0,
        help="records to write to each topic (none)",
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="program to run with BOOTSTRAP_SERVERS set; Kafka stops when it ends",
    )
    return parser


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    return name, _positive(partitions or "1")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _exit(signal_number: int, frame: object) -> NoReturn:
    sys.exit(0)  # unwinds the cluster's `with`


def _run(options: argparse.Namespace) -> None:
    """Run until a signal arrives, or a broker ends by itself.

    Raises:
        LaunchError: a broker has ended, or has not started; or the program cannot run.
    """
    with KafkaCluster(options.version, options.brokers, port=options.port) as cluster:
        for name, partitions in options.topic:
            replicas = min(options.brokers, 3)
            create_topic((HOST, options.port), name, partitions, replicas)
            log.info("topic %s, partitions: %d", name, partitions)
            if options.records:
                _produce_jobs(cluster, name, options.records)
                log.info("records in %s: %d", name, options.records)
        _announce(options)
        if command := [word for word in options.command if word != "--"]:
            sys.exit(_run_command(command, cluster.bootstrap_servers))
        while len(cluster.running) == options.brokers:
            time.sleep(CHECK_INTERVAL)
        (lost, *_) = cluster.brokers.keys() - cluster.running
        raise LaunchError(
            f"broker {lost} has ended unexpectedly:\n{cluster.log_tail(lost)}"
        )


def _produce_jobs(cluster: KafkaCluster, topic: str, count: int) -> None:
    """Write `job 1`, `job 2` and so on with Kafka's own producer.

    Raises:
        LaunchError: the producer has failed; the message has its output.
    """
    lines = "".join(f"job {number}\n" for number in range(1, count + 1))
    # Round robin: without keys a producer fills one partition at a time.
    spread = ("--producer-property", "partitioner.class=" + ROUND_ROBIN)
    where = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic)
    command = cluster.java_command(PRODUCER, *where, *spread)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    if done.returncode:
        raise LaunchError(f"the records could not be written:\n{done.stderr}")


def _run_command(command: Sequence[str], servers: str) -> int:
    """Run a program until it ends, and forward signals to it.

    It gets its own process group, so that the terminal does not send it Ctrl-C as well.
    """
    environment = {**os.environ, "BOOTSTRAP_SERVERS": servers}
    try:
        process = subprocess.Popen(command, env=environment, process_group=0)
    except OSError as error:
        raise LaunchError(f"cannot run {command[0]}: {error.strerror}") from None
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda number, _: process.send_signal(number))
    return process.wait()


def _announce(options: argparse.Namespace) -> None:
    ports = range(options.port, options.port + options.brokers)
    servers = ",".join(f"localhost:{port}" for port in ports)
    log.info("bootstrap servers: %s", servers)
    log.info("Ctrl-C stops it and removes its data")


if __name__ == "__main__":
    sys.exit(main())
