"""Where the settings of a client come from: arguments, environment, a file of Kafka's.

An argument wins over an environment variable, and that over the file. Nothing heavy is
loaded here until `load` is called: the command line's help comes by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sharecons.security import Security

__all__ = ["DEFAULT_CLIENT_ID", "DEFAULT_TIMEOUT", "ClientSettings", "load"]

DEFAULT_CLIENT_ID: Final = "sharecons"
DEFAULT_TIMEOUT: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What it takes to ask a cluster something.

    Attributes:
        bootstrap_servers: `host:port`, several with commas.
        security: TLS and SASL; None for plain TCP.
        client_id: for brokers' logs and quotas.
        timeout: seconds for a whole question.
        warnings: a line for each property that nobody knows.
    """

    bootstrap_servers: str
    security: "Security | None" = None
    client_id: str = DEFAULT_CLIENT_ID
    timeout: float = DEFAULT_TIMEOUT
    warnings: tuple[str, ...] = ()


def load(
    *,
    bootstrap_servers: str | None = None,
    command_config: str | PathLike[str] | None = None,
    properties: Mapping[str, str] | None = None,
    timeout: float | None = None,
    environ: Mapping[str, str] | None = None,
) -> ClientSettings:
    """Put together what a client needs.

    Args:
        bootstrap_servers: win over those of environment and file.
        command_config: path of a Kafka properties file.
        properties: single properties, which win over environment and file.
        timeout: seconds.
        environ: environment variables; the process's if not given.

    Raises:
        ConfigurationError: one line: the file and its line, the variable or the
            property, and what is wrong with it.
    """
    # Loads ssl and the reader of properties files, which help has no use for.
    from sharecons.properties.gathering import gather

    return gather(bootstrap_servers, command_config, properties, timeout, environ)
