"""The addresses of a cluster, and connecting to its brokers."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from random import randrange
from typing import Any, Final

from sharecons.config.security import Security
from sharecons.errors import ConfigurationError
from sharecons.instrumentation import Client
from sharecons.net.connect_attempts import ConnectAttempts
from sharecons.net.connection import Connection
from sharecons.net.io.sasl import SaslSessions
from sharecons.net.io.tls import map_within_grace
from sharecons.net.io.transport import Network, TcpNetwork
from sharecons.net.outages import Outages
from sharecons.protocol.grace_period import GracePeriod
from sharecons.protocol.partitions import Endpoint

__all__ = ["CONNECT_TIMEOUT", "Cluster", "check_network", "check_security"]

CONNECT_TIMEOUT: Final = 10.0  # socket.connection.setup.timeout.ms

ADVERTISED: Final = (
    "; brokers return this address (advertised.listeners): check that this host can "
    "reach it"
)
"""The user has not configured this address, so the error says where it is from."""


class Cluster:
    """The addresses of one cluster, and how to connect to them.

    Args:
        network: opens transports, with TLS if wanted; SASL is added here. None for
            TCP with the TLS settings of `security`.
        choose: returns a random index below a number, of the address to try first.
        was_accepted: a broker has accepted another client with these settings, so
            rejected tokens and certificates are retried for seconds from the start.

    Raises:
        ConfigurationError: `security` or `network` is of another type.

    Attributes:
        bootstrap: the configured addresses.
        client_id: for brokers' logs and quotas.
        cluster_id: by the latest metadata; None before.
        outages: logs the outages of brokers; None logs nothing.
    """

    def __init__(
        self,
        bootstrap: Sequence[Endpoint],
        network: Network | None = None,
        *,
        client_id: str,
        software_version: str,
        security: Security | None = None,
        choose: Callable[[int], int] = randrange,
        was_accepted: bool = False,
    ) -> None:
        check_network("network", network)
        security = check_security("security", security) or Security()
        self.outages: Outages | None = None
        self._choose = choose
        self.bootstrap = tuple(bootstrap)
        self._network = network or TcpNetwork(security.ssl_context, security.tls_files)
        self._is_plain = network is None and security.ssl_context is None
        credentials = security.credentials
        self._grace = GracePeriod(was_accepted=was_accepted)
        self._sasl: SaslSessions | None = None
        if credentials is not None:
            self._sasl = SaslSessions(credentials, self._grace)
        self.client_id = client_id
        self.cluster_id: str | None = None
        self._software_version = software_version
        self._reached: set[str] = set()

    def as_client(self, group_id: str | None = None) -> Client:
        """Return what instrumentation knows about a client of this cluster."""
        return Client(self.client_id, group_id, lambda: self.cluster_id)

    async def connect(
        self, endpoint: Endpoint, timeout: float = CONNECT_TIMEOUT
    ) -> Connection:
        """Connect to one broker; raises as `Connection.open`."""
        outages = self.outages
        is_known = endpoint in self.bootstrap or str(endpoint) in self._reached
        hint = "" if is_known else ADVERTISED
        with outages.connecting(str(endpoint), hint) if outages else nullcontext():
            connection = await Connection.open(
                self._network,
                endpoint,
                client_id=self.client_id,
                software_version=self._software_version,
                timeout=timeout,
                sasl=self._sasl,
                is_plain=self._is_plain,
                reached=self._reached,
                hint=hint,
                map_tls=partial(map_within_grace, self._grace, str(endpoint)),
            )
        self._grace.on_accepted(str(endpoint))
        if outages is not None:
            connection.watch(outages)
        return connection

    def should_avoid(self, broker: str, known: Iterable[Endpoint]) -> bool:
        """Return whether a broker has failed and another of the known ones has not."""
        failed = self.outages.failed if self.outages is not None else ()
        return broker in failed and any(str(each) not in failed for each in known)

    async def connect_any(
        self,
        known: Iterable[Endpoint] = (),
        timeout: float = CONNECT_TIMEOUT,
        *,
        retry: bool = False,
    ) -> Connection:
        """Connect to the first broker that responds: known ones, then bootstrap.

        Each list starts at a random index, so that clients spread over the brokers.
        With `retry`, failed addresses are tried again until `timeout` has passed.

        Raises: as `ConnectAttempts.run`.
        """
        rotated = [*self._rotated(tuple(known)), *self._rotated(self.bootstrap)]
        endpoints = tuple(dict.fromkeys(rotated))
        return await ConnectAttempts(
            self.connect, endpoints, timeout, retry=retry
        ).run()

    def _rotated(self, endpoints: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
        if len(endpoints) < 2:
            return endpoints
        first = self._choose(len(endpoints))
        return endpoints[first:] + endpoints[:first]


def check_security(name: str, security: object) -> Security | None:
    if isinstance(security, Security | None):
        return security
    # A mapping of properties contains passwords, so the message has its type only.
    raise ConfigurationError(
        f"{name} must be a Security or None, not a {type(security).__name__}; "
        "use Security.tls(...), Security.sasl(...) or load_security(...)"
    )


def check_network(name: str, network: Any) -> Any:
    if network is not None and not callable(getattr(network, "connect", None)):
        raise ConfigurationError(
            f"{name} must be a Network (an object with the method connect) or None, "
            f"not {network!r}"
        )
    return network
