"""`Security`: TLS and SASL as one value.

Security.tls(ca_file="ca.pem")
Security.sasl("SCRAM-SHA-512", "alice", password, tls=Security.tls(ca_file="ca.pem"))
Security.from_properties(properties)        # of a Kafka properties file
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
    """How a client secures its connections, and who it says it is.

    One value may serve any number of clients. Its repr shows no secret.

    Attributes:
        ssl_context: what TLS is made with; None for plain TCP.
        credentials: what SASL is made with; None for no SASL.
    """

    ssl_context: ssl.SSLContext | None = None
    credentials: Credentials | None = None

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
        """TLS, without SASL.

        Args:
            context: a context that is ready; nothing else may be given then.
            ca_file: certificates (PEM) to trust; the system's if not given.
            cert_file: this client's own certificate (PEM), with those between it and
                the broker's trusted ones, where brokers ask for it.
            key_file: its key (PEM), if it is not in `cert_file`.
            key_password: of the key.
            check_hostname: the broker's certificate must name the host.

        Raises:
            ConfigurationError: a file cannot be read, or is not what it should be.
        """
        if context is not None:
            if not (ca_file is cert_file is key_file is None and check_hostname):
                raise ConfigurationError("a context comes alone: it has all the rest")
            return cls(ssl_context=context)
        context = _context(ca_file, check_hostname)
        if cert_file is not None:
            _add_certificate(context, cert_file, key_file, key_password)
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
        """SASL with a name and a password.

        Args:
            mechanism: "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512".
            username, password: as the cluster knows them.
            tls: True for TLS with the system's certificates, what `tls()` gives for
                others. False has all go over the network as it is: of PLAIN the
                password too, and of SCRAM what it can be guessed from.

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
            raise ConfigurationError(f"username must be a name, not {username!r}")
        if not isinstance(password, str):
            raise ConfigurationError("password must be a str")
        check_unicode("username", username)
        check_unicode("password", password)
        credentials = Credentials(
            mechanism=mechanism, username=username, password=password
        )
        return cls(ssl_context=_context_of(tls), credentials=credentials)

    @classmethod
    def oauthbearer(
        cls,
        token: TokenSource,
        *,
        extensions: Mapping[str, str] | None = None,
        tls: "Security | ssl.SSLContext | bool" = True,
    ) -> "Security":
        """SASL with a token (OAUTHBEARER, KIP-255).

        Args:
            token: gives a token, plainly or to be awaited. It is called for each
                connection, and again before the broker's session ends (KIP-368); one
                that does not await must not take long.
            extensions: names and values that go to the broker beside it (KIP-342).
            tls: as for `sasl`.
        """
        if not callable(token):
            raise ConfigurationError("token must be a function that gives a token")
        credentials = Credentials(
            mechanism=OAUTHBEARER, token=token, extensions=dict(extensions or {})
        )
        return cls(ssl_context=_context_of(tls), credentials=credentials)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "Security":
        """What a Kafka client's properties say: `security.protocol` and the like.

        Names of Java's clients and librdkafka's; others are passed over. A relative
        path is one from the working directory.

        Raises:
            ConfigurationError: names the property, and says what is wrong with it.
        """
        # Reads stores and logins, of which programs that pass arguments have none.
        from sharecons.config.properties.errors import BrokenError
        from sharecons.config.properties.security import expanded, parts_of

        try:
            context, credentials = parts_of(expanded(properties))
        except BrokenError as error:
            raise ConfigurationError(str(error)) from error
        return cls(ssl_context=context, credentials=credentials)

    @property
    def protocol(self) -> Protocol:
        """Kafka's name for it, `security.protocol`."""
        return _PROTOCOLS[self.ssl_context is not None, self.credentials is not None]

    def __repr__(self) -> str:
        if self.credentials is None:
            return f"<Security {self.protocol}>"
        name = f" as {self.credentials.username!r}" if self.credentials.username else ""
        return f"<Security {self.protocol}, {self.credentials.mechanism}{name}>"


def _context_of(tls: Security | ssl.SSLContext | bool) -> ssl.SSLContext | None:
    if isinstance(tls, ssl.SSLContext):
        return tls
    if isinstance(tls, Security):
        return tls.ssl_context
    return _context(None, True) if tls else None


def _context(ca_file: Path | None, check_hostname: bool) -> ssl.SSLContext:
    file = None if ca_file is None else fspath(ca_file)
    try:
        context = ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"ca_file {file}: {error}") from error
    context.check_hostname = check_hostname
    return context


def _add_certificate(
    context: ssl.SSLContext,
    cert_file: Path,
    key_file: Path | None,
    password: str | None,
) -> None:
    # A key that is locked would have OpenSSL ask the terminal.
    try:
        context.load_cert_chain(cert_file, key_file, password or "")
    except (OSError, ValueError) as error:
        where = f"cert_file {fspath(cert_file)}"
        if key_file is not None:
            where += f", key_file {fspath(key_file)}"
        raise ConfigurationError(f"{where}: {error}") from error
