"""`sharecons broker`: an in-memory Kafka broker in the foreground."""

import argparse
from typing import TYPE_CHECKING

from sharecons.cli import output
from sharecons.cli.option_values import Subparsers, parse_new_topic

if TYPE_CHECKING:
    from sharecons.testing import EmbeddedBroker

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "broker",
        help="run an in-memory Kafka broker",
        description="Run an in-memory Kafka broker in the foreground, for tests and "
        "experiments. It stores nothing on disk, so all data is lost when it stops, "
        "and it accepts clients without authentication.",
    )
    add = parser.add_argument
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 for all of IPv4, :: for all "
        "of IPv4 and IPv6 (default: %(default)s)",
    )
    add(
        "--advertise",
        metavar="HOST:PORT",
        help="address that clients are given for the first broker; further brokers "
        "use the following ports; [HOST]:PORT for IPv6 (default: the listen address, "
        "or with 0.0.0.0 and :: the address that the client connected to)",
    )
    add(
        "--port",
        type=int,
        default=9092,
        help="port of the first broker; further brokers use the following ports; "
        "0 for any free ports (default: %(default)s)",
    )
    add(
        "--brokers",
        type=int,
        default=1,
        metavar="N",
        help="number of brokers (default: %(default)s)",
    )
    add(
        "--topic",
        type=parse_new_topic,
        action="append",
        default=[],
        metavar="NAME[:PARTITIONS]",
        help="create this topic, with 1 partition by default; can be repeated",
    )
    add(
        "--set",
        type=_parse_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a broker config, such as group.share.max.size=10; can be repeated",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    import anyio

    from sharecons.testing import EmbeddedBroker
    from sharecons.testing.broker.errors import RequestError

    try:
        kafka = EmbeddedBroker(
            brokers=options.brokers,
            host=options.host,
            port=options.port,
            topics={name: count or 1 for name, count in options.topic},
            settings=dict(options.set),
            advertise=options.advertise,
        )
    except ValueError as error:
        return _write_error(error, 2)
    try:
        anyio.run(_serve, kafka)
    except OSError as error:
        return _write_error(error.strerror or error, 1)
    except (UnicodeError, RequestError) as error:
        return _write_error(error, 1)
    return 0


def _write_error(reason: object, code: int) -> int:
    output.write_error(f"sharecons broker: {reason}")
    return code


async def _serve(kafka: "EmbeddedBroker") -> None:
    import anyio

    from sharecons.stop_signals import received_signals

    with anyio.open_signal_receiver(*received_signals()) as signals:
        async with kafka:
            output.write_line(f"bootstrap servers: {kafka.bootstrap_servers}")
            output.write_line("press Ctrl-C to stop the broker and discard its data")
            output.flush()
            async for _ in signals:
                return


def _parse_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value
