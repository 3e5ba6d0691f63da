"""PKCS12 stores; needs the extra `keystores`."""

from importlib import import_module
from typing import Any

__all__ = ["read_store"]

# Imported by name, since the build of a compiled wheel checks types without extras.
pkcs12: Any = import_module("cryptography.hazmat.primitives.serialization.pkcs12")
serialization: Any = import_module("cryptography.hazmat.primitives.serialization")


def read_store(data: bytes, password: str) -> tuple[bytes, str]:
    """Return the key (empty if there is none) and all certificates, as PEM.

    Raises:
        ValueError: the password is wrong, or the data is not a PKCS12 store.
    """
    pem = serialization.Encoding.PEM
    store = pkcs12.load_pkcs12(data, password.encode() or None)
    own = [store.cert] if store.cert is not None else []
    certificates = "".join(
        each.certificate.public_bytes(pem).decode()
        for each in (*own, *store.additional_certs)
    )
    if store.key is None:
        return b"", certificates
    key = store.key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return key, certificates
