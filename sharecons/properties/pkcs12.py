"""PKCS12 stores, by the extra `keystores`."""

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

__all__ = ["opened"]


def opened(data: bytes, password: str) -> tuple[bytes, str]:
    """Give the key, if there is one, and all certificates, as PEM.

    Raises:
        ValueError: the password is wrong, or this is no such store.
    """
    store = pkcs12.load_pkcs12(data, password.encode() or None)
    own = [store.cert] if store.cert is not None else []
    certificates = "".join(
        each.certificate.public_bytes(Encoding.PEM).decode()
        for each in (*own, *store.additional_certs)
    )
    if store.key is None:
        return b"", certificates
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key, certificates
