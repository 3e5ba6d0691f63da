"""Certificates for brokers and clients, issued by a private authority."""

from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

__all__ = ["PASSWORD", "Authority"]

PASSWORD = "store-secret"


@dataclass(frozen=True)
class Authority:
    """An authority, with its files in a directory."""

    directory: Path
    ca: trustme.CA

    @classmethod
    def new(cls, directory, name="ca"):
        authority = cls(directory / name, trustme.CA())
        authority.directory.mkdir()
        authority.ca.cert_pem.write_to_path(authority.ca_file)
        return authority

    @property
    def ca_file(self):
        return self.directory / "ca.pem"

    def issue(self, *names, stem):
        """Write a key, in PKCS#8 as Kafka requires, and its certificate to a file."""
        leaf = self.ca.issue_cert(*names)
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        file = self.directory / f"{stem}.pem"
        file.write_bytes(pem + chain)
        return file

    def trust_store(self):
        """Write a PKCS12 store with the authority's certificate.

        Java ignores a certificate that is not marked as trusted.
        """
        certificate = load_pem_x509_certificate(self.ca_file.read_bytes())
        data = pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(certificate, b"ca")],
            BestAvailableEncryption(PASSWORD.encode()),
        )
        return self._write("trust.p12", data)

    def key_store(self, pem_file):
        """Write a PKCS12 store with a key and its certificate."""
        pem = pem_file.read_bytes()
        data = pkcs12.serialize_key_and_certificates(
            b"me",
            load_pem_private_key(pem, None),
            load_pem_x509_certificate(pem),
            None,
            BestAvailableEncryption(PASSWORD.encode()),
        )
        return self._write(f"{pem_file.stem}.p12", data)

    def _write(self, name, data):
        file = self.directory / name
        file.write_bytes(data)
        return file
