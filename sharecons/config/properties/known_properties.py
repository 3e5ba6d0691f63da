"""Which properties there are, as far as they say how to get into a cluster.

Only of these anything is said where nobody knows them: a misspelt one would be missed
without a word, and a cluster stay shut. All others are passed over, since a program's
one file often has what its producers and consumers want.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

__all__ = ["ALIASES", "READ", "complaint"]

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
"""Other names of the same: librdkafka's, and newer ones of Java's."""

READ: Final = frozenset(
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

FAMILIES: Final = ("bootstrap.", "sasl.", "security.", "ssl.")

PASSED_OVER: Final = (
    "bootstrap.controllers",
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


def complaint(name: str) -> str | None:
    """What is to be said of a property that is not read; None for nothing."""
    if name in READ or not name.startswith(FAMILIES) or name.startswith(PASSED_OVER):
        return None
    near = get_close_matches(name, READ, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"nobody knows the property {name}{hint}"
