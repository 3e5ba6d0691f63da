"""`sharecons broker`: a Kafka in memory, in the foreground, for trying things out."""

import argparse
import signal
from typing import TYPE_CHECKING

from sharecons.cli import output

if TYPE_CHECKING:
    from sharecons.testing import EmbeddedBroker

    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser", "run"]

ENDINGS = (signal.SIGINT, signal.SIGTERM)


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "broker",
        help="run a Kafka in memory",
        description="Run a Kafka in memory, in the foreground, and forget it at the "
        "end. It is meant for tests and for trying things out: nothing is kept, and "
        "nobody is asked who he is.",
    )
    add = parser.add_argument
    add(
        "--host",
        default="127.0.0.1",
        help="the address where it listens (%(default)s); 0.0.0.0 or :: for all",
    )
    add(
        "--advertise",
        metavar="HOST:PORT",
        help="the address by which clients reach the first broker, the others have the "
        "ports that follow; [HOST]:PORT for IPv6. By default HOST is the one where it "
        "listens, or for all addresses the one that the client has connected to",
    )
    add(
        "--port",
        type=int,
        default=9092,
        help="of the first broker, the others follow; 0 for free ones (%(default)s)",
    )
    add("--brokers", type=int, default=1, help="how many (%(default)s)")
    add(
        "--topic",
        type=_topic,
        action="append",
        default=[],
        metavar="NAME:PARTITIONS",
        help="a topic to create; give it again for more",
    )
    add(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the brokers, by Kafka's name",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal ends it; gives the exit code."""
    import anyio

    from sharecons.testing import EmbeddedBroker
    from sharecons.testing.broker.placement import RequestError

    try:
        kafka = EmbeddedBroker(
            brokers=options.brokers,
            host=options.host,
            port=options.port,
            topics=dict(options.topic),
            settings=dict(options.set),
            advertise=options.advertise,
        )
    except ValueError as error:
        return _failed(error, 2)
    try:
        anyio.run(_serve, kafka)
    except OSError as error:
        return _failed(error.strerror or error, 1)
    except (UnicodeError, RequestError) as error:
        return _failed(error, 1)
    return 0


def _failed(reason: object, code: int) -> int:
    output.write_error(f"sharecons broker: {reason}")
    return code


async def _serve(kafka: "EmbeddedBroker") -> None:
    import anyio

    with anyio.open_signal_receiver(*ENDINGS) as signals:
        async with kafka:
            output.write_line(f"bootstrap servers: {kafka.bootstrap_servers}")
            output.write_line("Ctrl-C stops it, and all is forgotten")
            output.flush()
            async for _ in signals:
                return


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    if not name or not (partitions or "1").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:PARTITIONS")
    return name, int(partitions or 1)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value
