"""The connection options of every command that talks to a cluster."""

import argparse
import os
import re
from typing import TYPE_CHECKING, Final

from sharecons.cli.output import write_error
from sharecons.escaping import decode_utf8, has_surrogates

if TYPE_CHECKING:
    from sharecons.properties.settings import ClientSettings

__all__ = ["add_options", "load_settings", "parse_duration"]

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)?")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}

SETTINGS_HELP: Final = (
    "These options override environment variables (SHARECONS_BOOTSTRAP_SERVERS, "
    "SHARECONS_COMMAND_CONFIG, and one for each property, such as "
    "SHARECONS_SASL_PASSWORD), and those override the properties file."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the cluster's address, security and timeout.

    Parsing sets `bootstrap_servers`, `command_config`, `command_properties` and
    `timeout` (seconds or None) in the namespace.
    """
    add = parser.add_argument_group("connection", SETTINGS_HELP).add_argument
    add(
        "--bootstrap-server",
        "--bootstrap-servers",
        dest="bootstrap_servers",
        metavar="HOST:PORT,...",
        help="brokers to connect to first; needed, unless the environment or the "
        "properties file names them",
    )
    add(
        "--command-config",
        metavar="FILE",
        help="a Kafka properties file: security.protocol, sasl.jaas.config, ...",
    )
    add(
        "--command-property",
        dest="command_properties",
        type=_parse_property,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set one such property; can be repeated",
    )
    add(
        "--timeout",
        type=parse_duration,
        metavar="MS",
        help="give up after this time: milliseconds, or with a unit as in 20s "
        "(default: 30s)",
    )


def load_settings(options: argparse.Namespace) -> "ClientSettings":
    """Combine options, environment variables and properties file.

    Write a warning to stderr for each property and environment variable without an
    effect.

    Raises:
        ConfigurationError: a value is invalid; the message says which and where.
    """
    from sharecons.properties.settings import load

    settings = load(
        bootstrap_servers=options.bootstrap_servers,
        command_config=options.command_config,
        properties=dict(options.command_properties),
        timeout=options.timeout,
        environ=_environment(),
    )
    for warning in settings.warnings:
        write_error(f"warning: {warning}")
    return settings


def _environment() -> dict[str, str]:
    from sharecons.errors import ConfigurationError

    environment = {name: decode_utf8(value) for name, value in os.environ.items()}
    for name, value in environment.items():
        if name.startswith("SHARECONS_") and has_surrogates(value):
            raise ConfigurationError(f"{name} in the environment is not valid UTF-8")
    return environment


def _parse_property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


def parse_duration(text: str) -> float:
    """Return seconds; a number alone is milliseconds, as in Kafka's tools."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a positive number of milliseconds or a time such as 20s"
        )
    return float(match[1]) * _SECONDS[match[2] or "ms"]
