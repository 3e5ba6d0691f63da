"""Options that every command which asks a cluster has, and what they come to."""

import argparse
import os
import re
from typing import TYPE_CHECKING, Final

from sharecons.cli.output import write_error
from sharecons.escaping import has_surrogates

if TYPE_CHECKING:
    from sharecons.config.settings import ClientSettings

__all__ = ["add_options", "load"]

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)?")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}

ENVIRONMENT: Final = (
    "Settings come from these options, from environment variables "
    "(SHARECONS_BOOTSTRAP_SERVERS, SHARECONS_COMMAND_CONFIG, and any property as in "
    "SHARECONS_SASL_PASSWORD), and from the properties file, in this order."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which cluster, how to get in, and how long to wait.

    Leaves `bootstrap_servers`, `command_config`, `command_properties` and `timeout`
    (seconds or None) in the namespace.
    """
    add = parser.add_argument_group("connection", ENVIRONMENT).add_argument
    add(
        "--bootstrap-server",
        "--bootstrap-servers",
        dest="bootstrap_servers",
        metavar="HOST:PORT,...",
        help="brokers to begin with",
    )
    add(
        "--command-config",
        metavar="FILE",
        help="a Kafka properties file: security.protocol, sasl.jaas.config, ...",
    )
    add(
        "--command-property",
        dest="command_properties",
        type=_property,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one such property; give it again for more",
    )
    add(
        "--timeout",
        type=_duration,
        metavar="MS",
        help="give up after so many milliseconds; or with a unit, as in 20s (30s)",
    )


def load(options: argparse.Namespace) -> "ClientSettings":
    """Put together what the options, the environment and the file say.

    Properties that nobody knows are told on stderr, one line each.

    Raises:
        ConfigurationError: one line that says where and what.
    """
    from sharecons.config import settings

    _check_environment()
    found = settings.load(
        bootstrap_servers=options.bootstrap_servers,
        command_config=options.command_config,
        properties=dict(options.command_properties),
        timeout=options.timeout,
    )
    for warning in found.warnings:
        write_error(f"warning: {warning}")
    return found


def _check_environment() -> None:
    from sharecons.errors import ConfigurationError

    for name, value in os.environ.items():
        if name.startswith("SHARECONS_") and has_surrogates(value):
            raise ConfigurationError(f"{name} in the environment is not valid UTF-8")


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


def _duration(text: str) -> float:
    """Seconds; a number alone is milliseconds, as for Kafka's own tools."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither milliseconds nor a time such as 20s"
        )
    return float(match[1]) * _SECONDS[match[2] or "ms"]
