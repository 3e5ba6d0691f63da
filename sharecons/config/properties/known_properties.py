"""The known properties of connections and security.

An unknown property with one of `CHECKED_PREFIXES` results in a warning: it is probably
misspelled, and the connection would fail for an unclear reason. Other properties are
ignored, since one file often configures producers and consumers too.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

__all__ = ["ALIASES", "SUPPORTED", "unknown_warning"]

ALIASES: Final[Mapping[str, str]] = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": (
        "sasl.oauthbearer.client.secret"
    ),
}
"""Our names by alternative names (of librdkafka, and newer ones of Java)."""

SUPPORTED: Final = frozenset(
    {
        *ALIASES,
        *ALIASES.values(),
        "client.id",
        "default.api.timeout.ms",
        "enable.ssl.certificate.verification",
        "request.timeout.ms",
        "sasl.jaas.config",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "ssl.certificate.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)

CHECKED_PREFIXES: Final = ("bootstrap.", "sasl.", "security.", "ssl.")

IGNORED_PREFIXES: Final = (
    "bootstrap.controllers",
    "bootstrap.resolve.timeout.ms",
    "sasl.client.callback.handler.class",
    "sasl.kerberos.",
    "sasl.login.",
    "sasl.oauthbearer.",
    "security.providers",
    "ssl.ca.certificate.stores",
    "ssl.cipher.suites",
    "ssl.crl.location",
    "ssl.curves.list",
    "ssl.enabled.protocols",
    "ssl.engine.",
    "ssl.key.",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.sigalgs.list",
    "ssl.trustmanager.algorithm",
)


def unknown_warning(name: str) -> str | None:
    """Return a warning if the property seems misspelled, else None."""
    if (
        name in SUPPORTED
        or not name.startswith(CHECKED_PREFIXES)
        or name.startswith(IGNORED_PREFIXES)
    ):
        return None
    near = get_close_matches(name, SUPPORTED, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown property {name}{hint}"
