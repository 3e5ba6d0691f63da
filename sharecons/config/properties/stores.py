"""Certificates and keys out of what Kafka calls stores: PEM, and PKCS12.

What a store is, its first bytes tell; the property for that is often wrong, and Java
itself goes by them.
"""

import re
import ssl
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sharecons.config.properties.errors import BrokenError

__all__ = ["add_certificate", "certificates_of", "inline", "keys_of", "read"]

JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
PKCS12: Final = b"\x30"
PEM: Final = b"-----BEGIN "

_BLOCK: Final = re.compile(r"(-----BEGIN [^-]+-----)([^-]*)(-----END [^-]+-----)")


def read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BrokenError(name, f"{path}: {error.strerror or error}") from error


def inline(text: str) -> bytes:
    """PEM that stands in a property, where its lines are often one."""
    if "\n" in text.strip():
        return text.encode()
    return _BLOCK.sub(lambda block: _in_lines(*block.groups()), text).encode()


def _in_lines(begin: str, body: str, end: str) -> str:
    digits = "".join(body.split())
    lines = [digits[at : at + 64] for at in range(0, len(digits), 64)]
    return "\n".join((begin, *lines, end, ""))


def certificates_of(name: str, data: bytes, password: str) -> str:
    """All certificates of a trust store, as PEM.

    Raises:
        BrokenError: it has none, cannot be opened, or is of a kind that is not read.
    """
    if PEM in data:
        return data.decode("utf-8", "replace")
    _, certificates = _opened(name, data, password)
    if not certificates:
        raise BrokenError(name, "there is no certificate in it")
    return certificates


def keys_of(name: str, data: bytes, password: str) -> bytes:
    """The key of a key store, and the certificates for it, as PEM.

    Raises:
        BrokenError: as of `certificates_of`.
    """
    if PEM in data:
        return data
    key, certificates = _opened(name, data, password)
    if not key or not certificates:
        raise BrokenError(name, "there is no key with a certificate in it")
    return key + certificates.encode()


def add_certificate(
    context: ssl.SSLContext, name: str, pem: bytes, password: str
) -> None:
    """Have TLS show this certificate; `pem` has it with its key.

    Raises:
        BrokenError: they do not go together, or the key does not open.
    """
    # OpenSSL takes them from files only, by way of Python; nobody else may read these.
    with TemporaryDirectory(prefix="sharecons-") as directory:
        path = Path(directory) / "keys.pem"
        path.touch(mode=0o600)
        path.write_bytes(pem)
        # A key that is locked would have OpenSSL ask the terminal.
        loading(name, lambda: context.load_cert_chain(path, password=password or ""))


def loading(name: str, load: Callable[[], None]) -> None:
    """Load something into a context; what that raises becomes a `BrokenError`."""
    try:
        load()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise BrokenError(name, _words(error, reason)) from error


def _words(error: Exception, reason: str | None) -> str:
    if isinstance(error, ssl.SSLError):
        said = (error.reason or str(error)).replace("_", " ").lower()
        return f"OpenSSL cannot read it ({said}); is the password right?"
    return reason or str(error)


def _opened(name: str, data: bytes, password: str) -> tuple[bytes, str]:
    """Key and certificates of a PKCS12 store."""
    if data.startswith(JKS):
        raise BrokenError(
            name,
            "this is a JKS store, which only Java reads; make one of PKCS12 of it: "
            "keytool -importkeystore -srckeystore OLD -destkeystore NEW.p12 "
            "-deststoretype PKCS12",
        )
    if not data.startswith(PKCS12):
        raise BrokenError(name, "this is neither PEM nor PKCS12")
    try:
        from sharecons.config.properties.pkcs12 import opened
    except ImportError as error:
        raise BrokenError(
            name,
            "PKCS12 stores need a library more: pip install 'sharecons[keystores]'",
        ) from error
    try:
        return opened(data, password)
    except ValueError as error:
        raise BrokenError(
            name, "it does not open; is the password right, and is it PKCS12?"
        ) from error
