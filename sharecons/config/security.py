"""`Security`: the TLS and SASL settings of a client in one value.

Security.tls(ca_file="ca.pem")
Security.sasl("SCRAM-SHA-512", "alice", password, tls=Security.tls(ca_file="ca.pem"))
load_security("client.properties")          # from a Kafka properties file
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Final, Literal

from sharecons.config.validation import check_unicode
from sharecons.errors import ConfigurationError
from sharecons.protocol.sasl.credentials import (
    MECHANISMS,
    OAUTHBEARER,
    Credentials,
    TokenSource,
)

__all__ = ["Security"]

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Path = str | PathLike[str]

_PROTOCOLS: Final[Mapping[tuple[bool, bool], Protocol]] = {
    (False, False): "PLAINTEXT",
    (True, False): "SSL",
    (False, True): "SASL_PLAINTEXT",
    (True, True): "SASL_SSL",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Security:
    """How a client encrypts its connections and authenticates itself.

    Several clients can share one value. Its repr shows no secret.

    Attributes:
        ssl_context: the context for TLS; None for plain TCP.
        credentials: the credentials for SASL; None for no SASL.
    """

    ssl_context: ssl.SSLContext | None = None
    credentials: Credentials | None = None

    def __post_init__(self) -> None:
        # The messages contain no value: it can be a secret.
        if not isinstance(self.ssl_context, ssl.SSLContext | None):
            kind = type(self.ssl_context).__name__
            raise ConfigurationError(
                f"ssl_context must be an ssl.SSLContext or None, not a {kind}; use "
                "Security.tls(ca_file=...)"
            )
        if not isinstance(self.credentials, Credentials | None):
            kind = type(self.credentials).__name__
            raise ConfigurationError(
                f"credentials must be Credentials or None, not a {kind}; use "
                "Security.sasl(mechanism, username, password)"
            )

    @classmethod
    def tls(
        cls,
        context: ssl.SSLContext | None = None,
        *,
        ca_file: Path | None = None,
        cert_file: Path | None = None,
        key_file: Path | None = None,
        key_password: str | None = None,
        check_hostname: bool = True,
    ) -> "Security":
        """Return TLS settings, without SASL.

        Args:
            context: a complete context, instead of all other arguments.
            ca_file: the trusted certificates (PEM); by default the system's
                certificates.
            cert_file: the client's certificate (PEM) with its intermediate
                certificates, if brokers require one.
            key_file: the certificate's key (PEM), if it is not in `cert_file`.
            key_password: the password of the key.
            check_hostname: whether the broker's certificate must contain the host.

        Raises:
            ConfigurationError: a file cannot be read or has invalid content, or a key
                has no certificate.
        """
        if context is not None:
            if not (ca_file is cert_file is key_file is None and check_hostname):
                raise ConfigurationError(
                    "context cannot be combined with other arguments: configure the "
                    "context itself"
                )
            return cls(ssl_context=context)
        context = _create_context(ca_file, check_hostname)
        if cert_file is not None:
            _load_certificate(context, cert_file, key_file, key_password)
        elif key_file is not None or key_password is not None:
            name = "key_password" if key_file is None else "key_file"
            raise ConfigurationError(
                f"{name} needs cert_file: without a certificate the client does not "
                "authenticate itself"
            )
        return cls(ssl_context=context)

    @classmethod
    def sasl(
        cls,
        mechanism: str,
        username: str,
        password: str,
        *,
        tls: "Security | ssl.SSLContext | bool" = True,
    ) -> "Security":
        """Return SASL settings with a username and a password.

        Args:
            mechanism: "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512".
            username, password: the credentials in the cluster.
            tls: True for TLS with the system's certificates, or a result of `tls()`.
                False sends everything unencrypted: with PLAIN also the password, with
                SCRAM data from which it can be guessed.

        Raises:
            ConfigurationError: the mechanism is unknown, or the name or password is
                missing or not valid Unicode.
        """
        if mechanism not in MECHANISMS or mechanism == OAUTHBEARER:
            known = ", ".join(name for name in MECHANISMS if name != OAUTHBEARER)
            raise ConfigurationError(
                f"mechanism must be one of {known}, not {mechanism!r}"
            )
        if not username or not isinstance(username, str):
            raise ConfigurationError(
                f"username must be a non-empty str, not {username!r}"
            )
        if not isinstance(password, str):
            raise ConfigurationError("password must be a str")
        check_unicode("username", username)
        check_unicode("password", password)
        credentials = Credentials(
            mechanism=mechanism, username=username, password=password
        )
        return cls(ssl_context=_context_from(tls), credentials=credentials)

    @classmethod
    def oauthbearer(
        cls,
        token: TokenSource,
        *,
        extensions: Mapping[str, str] | None = None,
        tls: "Security | ssl.SSLContext | bool" = True,
    ) -> "Security":
        """Return SASL settings with a token (OAUTHBEARER, KIP-255).

        Args:
            token: a plain or async function that returns a token as a str. It is
                called for each connection, and again before the broker's session ends
                (KIP-368); if it fails then, it is called again until the session's
                end. A plain function blocks the event loop, so it must be fast; an
                async one has 10 s.
            extensions: SASL extensions to send with the token (KIP-342).
            tls: as for `sasl`.
        """
        if not callable(token):
            raise ConfigurationError("token must be a function that returns a token")
        extensions = {} if extensions is None else extensions
        if not isinstance(extensions, Mapping) or not all(
            isinstance(each, str) for pair in extensions.items() for each in pair
        ):
            raise ConfigurationError("extensions must map str to str, or be None")
        credentials = Credentials(
            mechanism=OAUTHBEARER, token=token, extensions=dict(extensions)
        )
        return cls(ssl_context=_context_from(tls), credentials=credentials)

    @property
    def protocol(self) -> Protocol:
        """The value of Kafka's `security.protocol`."""
        return _PROTOCOLS[self.ssl_context is not None, self.credentials is not None]

    def __repr__(self) -> str:
        if self.credentials is None:
            return f"<Security {self.protocol}>"
        name = f" as {self.credentials.username!r}" if self.credentials.username else ""
        return f"<Security {self.protocol}, {self.credentials.mechanism}{name}>"


def _context_from(tls: Security | ssl.SSLContext | bool) -> ssl.SSLContext | None:
    if isinstance(tls, ssl.SSLContext):
        return tls
    if isinstance(tls, Security):
        return tls.ssl_context
    if not isinstance(tls, bool):
        # None must not become False: that would send the password unencrypted.
        raise ConfigurationError(
            f"tls must be True, Security.tls(...) or an ssl.SSLContext, not a "
            f"{type(tls).__name__}; tls=False encrypts nothing"
        )
    return _create_context(None, True) if tls else None


def _create_context(ca_file: Path | None, check_hostname: bool) -> ssl.SSLContext:
    file = None if ca_file is None else fspath(ca_file)
    try:
        context = ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"ca_file {file}: {error}") from error
    context.check_hostname = check_hostname
    return context


def _load_certificate(
    context: ssl.SSLContext,
    cert_file: Path,
    key_file: Path | None,
    password: str | None,
) -> None:
    # With no password at all, OpenSSL would read it from the terminal.
    try:
        context.load_cert_chain(cert_file, key_file, password or "")
    except (OSError, ValueError) as error:
        where = f"cert_file {fspath(cert_file)}"
        if key_file is not None:
            where += f", key_file {fspath(key_file)}"
        raise ConfigurationError(f"{where}: {error}") from error
