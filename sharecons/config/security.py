"""`Security`: the TLS and SASL settings of a client in one value.

Security.tls(ca_file="ca.pem")
Security.sasl("SCRAM-SHA-512", "alice", password, tls=Security.tls(ca_file="ca.pem"))
load_security("client.properties")          # from a Kafka properties file
"""

import os
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
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

__all__ = ["Security", "TlsFiles"]

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
        tls_files: the files of the context, which are loaded again for a new connection
            if they have changed; None if it has none.
    """

    ssl_context: ssl.SSLContext | None = None
    credentials: Credentials | None = None
    tls_files: "TlsFiles | None" = None

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
                certificates. This file, `cert_file` and `key_file` are read again for a
                new connection if they have changed.
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
        if cert_file is None and not (key_file is key_password is None):
            name = "key_password" if key_file is None else "key_file"
            raise ConfigurationError(
                f"{name} needs cert_file: without a certificate the client does not "
                "authenticate itself"
            )
        paths = [path for path in (ca_file, cert_file, key_file) if path]
        load = partial(_load_files, ca_file, cert_file, key_file, key_password)
        files = TlsFiles(paths, load)
        context = _create_context(ca_file, check_hostname)
        load(context)
        return cls(ssl_context=context, tls_files=files if paths else None)

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
        return replace(_tls_from(tls), credentials=credentials)

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
        return replace(_tls_from(tls), credentials=credentials)

    @property
    def protocol(self) -> Protocol:
        """The value of Kafka's `security.protocol`."""
        return _PROTOCOLS[self.ssl_context is not None, self.credentials is not None]

    def __repr__(self) -> str:
        if self.credentials is None:
            return f"<Security {self.protocol}>"
        name = f" as {self.credentials.username!r}" if self.credentials.username else ""
        return f"<Security {self.protocol}, {self.credentials.mechanism}{name}>"


class TlsFiles:
    """Certificates and keys on disk, which are renewed while a client runs.

    Create it before they are loaded for the first time. A context keeps the authorities
    that are no longer in their file: it can only be given more of them.

    Args:
        load: loads the files into a context, or raises ConfigurationError.
    """

    def __init__(
        self, paths: Sequence[Path], load: Callable[[ssl.SSLContext], None]
    ) -> None:
        self._paths = [fspath(path) for path in paths]
        self._load = load
        self._stamps = self._read_stamps()

    def refresh(self, context: ssl.SSLContext) -> None:
        """Load the files if one has changed since the last call.

        Files that cannot be loaded change nothing, and are loaded after their next
        change: a certificate is often written before its key.
        """
        stamps = self._read_stamps()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        # structlog takes 0.1 s to import; most clients never need it here.
        from sharecons.log import get_logger

        log, files = get_logger(__name__), self._paths
        try:
            # Tried elsewhere: a failure leaves a context without its earlier key.
            self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            self._load(context)
        except ConfigurationError as error:
            log.warning(
                "changed TLS files cannot be loaded, using the earlier ones",
                files=files,
                reason=str(error),
            )
        else:
            log.info("changed TLS files are loaded", files=files)

    def _read_stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None  # it is being replaced
    return found.st_ino, found.st_ctime_ns, found.st_size


def _tls_from(tls: Security | ssl.SSLContext | bool) -> Security:
    if isinstance(tls, ssl.SSLContext):
        return Security(ssl_context=tls)
    if isinstance(tls, Security):
        return tls
    if not isinstance(tls, bool):
        # None must not become False: that would send the password unencrypted.
        raise ConfigurationError(
            f"tls must be True, Security.tls(...) or an ssl.SSLContext, not a "
            f"{type(tls).__name__}; tls=False encrypts nothing"
        )
    return Security.tls() if tls else Security()


def _create_context(ca_file: Path | None, check_hostname: bool) -> ssl.SSLContext:
    with _reading(ca_file=ca_file):
        context = ssl.create_default_context(
            cafile=None if ca_file is None else fspath(ca_file)
        )
    context.check_hostname = check_hostname
    return context


def _load_files(
    ca_file: Path | None,
    cert_file: Path | None,
    key_file: Path | None,
    password: str | None,
    context: ssl.SSLContext,
) -> None:
    if ca_file:
        with _reading(ca_file=ca_file):
            context.load_verify_locations(ca_file)
    if cert_file is not None:
        with _reading(cert_file=cert_file, key_file=key_file):
            # With no password at all, OpenSSL would read it from the terminal.
            context.load_cert_chain(cert_file, key_file, password or "")


@contextmanager
def _reading(**files: Path | None) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        named = (f"{key} {fspath(file)}" for key, file in files.items() if file)
        raise ConfigurationError(f"{', '.join(named)}: {error}") from error
