"""The known properties of connections and security, and their environment variables.

An unknown property with one of `CHECKED_PREFIXES`, or with almost the name of a known
one, results in a warning: it is probably misspelled, and the connection would fail for
an unclear reason. Other properties are ignored, since one file often configures
producers and consumers too.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Final

__all__ = [
    "ALIASES",
    "MISSPELLED",
    "SUPPORTED",
    "find_variables",
    "unknown_variable_warning",
    "unknown_warning",
]

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

MISSPELLED: Final = 0.9
"""Similarity, from 0 to 1. Names of producers, brokers and Streams are below 0.85."""

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

PREFIX: Final = "SHARECONS_"
"""The prefix of environment variables."""

_OTHER_VARIABLES: Final = re.compile(
    # The command's file, tokens, the build, and the tests of this project.
    r"COMMAND_CONFIG|DASHBOARD_(READ_)?TOKEN|COMPILE|PURE|(TEST|SPARK)_.*"
    # Kubernetes sets these for a service whose name begins with "sharecons".
    r"|(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_.*)?)"
)
"""Names without the prefix of variables that are no properties."""


def find_variables(environ: Iterable[str]) -> dict[str, str]:
    """Return the names of environment variables for properties, by property."""
    return {
        name.removeprefix(PREFIX).lower().replace("_", "."): name
        for name in environ
        if name.startswith(PREFIX)
        and not _OTHER_VARIABLES.fullmatch(name.removeprefix(PREFIX))
    }


def unknown_variable_warning(name: str) -> str | None:
    """Return a warning if the variable for this property has no effect, else None.

    `CHECKED_PREFIXES` do not limit it: no other program uses these variables.
    """
    if name in SUPPORTED or name.startswith(IGNORED_PREFIXES):
        return None
    hint = _hint(name, (*SUPPORTED, "command.config"), _to_variable)
    return f"unknown environment variable {_to_variable(name)}{hint}"


def _to_variable(name: str) -> str:
    return PREFIX + name.upper().replace(".", "_")


def unknown_warning(
    name: str,
    known: Collection[str] = SUPPORTED,
    prefixes: tuple[str, ...] = CHECKED_PREFIXES,
) -> str | None:
    """Return a warning if the property seems misspelled, else None."""
    if name in known or name.startswith(IGNORED_PREFIXES):
        return None
    is_similar = bool(get_close_matches(name, known, 1, MISSPELLED))
    if not is_similar and not name.startswith(prefixes):
        return None
    return f"unknown property {name}{_hint(name, known)}"


def _hint(
    name: str, known: Collection[str], show: Callable[[str], str] = lambda each: each
) -> str:
    near = get_close_matches(name, known, 1)
    return f"; did you mean {show(near[0])}?" if near else ""
