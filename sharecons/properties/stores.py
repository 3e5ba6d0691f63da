"""Certificates and keys from Kafka's key stores and trust stores (PEM and PKCS12).

The first bytes show the type of a store. The property for it is often wrong, and Java
uses the bytes too.
"""

import re
import ssl
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Final

from sharecons.escaping import to_file_name
from sharecons.properties.errors import PropertyError

__all__ = [
    "add_certificate",
    "decode_pem_value",
    "extract_certificates",
    "extract_key",
    "read_file",
]

JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
PKCS12: Final = b"\x30"
PEM: Final = b"-----BEGIN "

_BLOCK: Final = re.compile(r"(-----BEGIN [^-]+-----)([^-]*)(-----END [^-]+-----)")


def read_file(name: str, path: str) -> bytes:
    try:
        return Path(to_file_name(path)).read_bytes()
    except OSError as error:
        raise PropertyError(name, f"{path}: {error.strerror or error}") from error


def decode_pem_value(text: str) -> bytes:
    """Return the PEM data in a property's value, which is often a single line."""
    if "\n" in text.strip():
        return text.encode()
    return _BLOCK.sub(lambda block: _wrap_lines(*block.groups()), text).encode()


def _wrap_lines(begin: str, body: str, end: str) -> str:
    return "\n".join((begin, *wrap("".join(body.split()), 64), end, ""))


def extract_certificates(name: str, data: bytes, password: str) -> str:
    """Return all certificates of a trust store, as PEM.

    Raises:
        PropertyError: it has no certificate, cannot be opened, or is not supported.
    """
    if PEM in data:
        return data.decode("utf-8", "replace")
    _, certificates = _read_pkcs12(name, data, password)
    if not certificates:
        raise PropertyError(name, "the store contains no certificate")
    return certificates


def extract_key(name: str, data: bytes, password: str) -> bytes:
    """Return the key of a key store and its certificates, as PEM.

    Raises:
        PropertyError: it has no key with a certificate, cannot be opened, or is not
            supported.
    """
    if PEM in data:
        return data
    key, certificates = _read_pkcs12(name, data, password)
    if not key or not certificates:
        raise PropertyError(name, "the store contains no key with a certificate")
    return key + certificates.encode()


def add_certificate(
    context: ssl.SSLContext, name: str, pem: bytes, password: str
) -> None:
    """Load a client certificate into a context; `pem` has it with its key.

    Raises:
        PropertyError: the key does not match, or its password is wrong.
    """
    # Python's ssl module reads keys only from files: make one for this user alone.
    with TemporaryDirectory(prefix="sharecons-") as directory:
        path = Path(directory) / "keys.pem"
        path.touch(mode=0o600)
        path.write_bytes(pem)
        # With no password at all, OpenSSL would read it from the terminal.
        load_into_context(
            name, lambda: context.load_cert_chain(path, password=password or "")
        )


def load_into_context(name: str, load: Callable[[], None]) -> None:
    """Call `load`, which changes a context; convert its errors to `PropertyError`."""
    try:
        load()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise PropertyError(name, _describe(error, reason)) from error


def _describe(error: Exception, reason: str | None) -> str:
    if isinstance(error, ssl.SSLError):
        openssl_reason = (error.reason or str(error)).replace("_", " ").lower()
        return f"OpenSSL cannot read it ({openssl_reason}); is the password right?"
    return reason or str(error)


def _read_pkcs12(name: str, data: bytes, password: str) -> tuple[bytes, str]:
    """Return the key and the certificates of a PKCS12 store."""
    if data.startswith(JKS):
        raise PropertyError(
            name,
            "JKS stores are not supported; convert it to PKCS12: "
            "keytool -importkeystore -srckeystore OLD -destkeystore NEW.p12 "
            "-deststoretype PKCS12",
        )
    if not data.startswith(PKCS12):
        raise PropertyError(name, "the store is neither PEM nor PKCS12")
    try:
        from sharecons.properties.pkcs12 import read_store
    except ImportError as error:
        raise PropertyError(
            name,
            "PKCS12 stores need an extra: pip install 'sharecons[keystores]'",
        ) from error
    try:
        return read_store(data, password)
    except ValueError as error:
        raise PropertyError(
            name, "cannot open the store; is the password right, and is it PKCS12?"
        ) from error
