"""The options with which every client connects: consumer, worker and producer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from sharecons.config.not_given import NotGiven
from sharecons.config.options import option
from sharecons.config.security import Security
from sharecons.config.validation import (
    HOUR,
    check_number,
    check_string,
    parse_bootstrap,
)
from sharecons.instrumentation import Instrumentation, choose_instrumentation
from sharecons.net.cluster import Cluster, check_network, check_security
from sharecons.net.io.transport import Network
from sharecons.version import VERSION

__all__ = ["ClientSettings", "ConnectionOptions", "ConnectionSettings"]


class ConnectionOptions(TypedDict, total=False):
    """Keyword arguments of every client; `ConnectionSettings` describes them."""

    bootstrap_servers: str | Sequence[str]
    client_id: str
    security: Security | None
    connect_timeout: float
    request_timeout: float
    network: Network | None
    instrumentation: Instrumentation | None | NotGiven


def _check_servers(_: str, servers: str | Sequence[str]) -> str | Sequence[str]:
    parse_bootstrap(servers)
    return servers


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How a client connects to its cluster."""

    bootstrap_servers: str | Sequence[str] = option(
        "localhost:9092",
        _check_servers,
        "`host:port` of brokers to connect to first; several with commas or as a "
        "sequence",
        kafka_property="bootstrap.servers",
    )
    client_id: str = option(
        "sharecons",
        check_string,
        "the name in brokers' logs and quotas",
        kafka_property="client.id",
    )
    security: Security | None = option(
        None, check_security, "TLS and SASL (docs/security.md); without it plain TCP"
    )
    network: Network | None = option(
        None, check_network, "opens connections, for tests (docs/testing.md)"
    )

    def new_cluster(self) -> Cluster:
        return Cluster(
            parse_bootstrap(self.bootstrap_servers),
            self.network,
            client_id=self.client_id,
            software_version=VERSION,
            security=self.security,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The time limits and the instrumentation of a client."""

    connect_timeout: float = option(
        10.0,
        partial(check_number, minimum=0.001, maximum=HOUR),
        "seconds to connect to a first broker, at the start. Addresses that fail are "
        "tried again until then",
    )
    request_timeout: float = option(
        30.0,
        partial(check_number, minimum=0.001, maximum=HOUR),
        "seconds to wait for one response",
        kafka_property="request.timeout.ms",
    )
    instrumentation: Instrumentation | None = option(
        None,
        lambda _, given: choose_instrumentation(given),
        "a `sharecons.otel.OpenTelemetry` (docs/opentelemetry.md), or None for no "
        "traces. If it is not given, what `sharecons.otel.instrument` has set",
        shown="not given",
    )
