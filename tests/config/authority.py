"""Certificates for a broker and a client, of an authority that nobody else knows."""

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
    """Files of one authority in a directory."""

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
        """A key, in PKCS#8 as Kafka wants it, with its certificate, in one file."""
        leaf = self.ca.issue_cert(*names)
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        file = self.directory / f"{stem}.pem"
        file.write_bytes(pem + chain)
        return file

    def trust_store(self):
        """The authority alone, as PKCS12."""
        certificate = load_pem_x509_certificate(self.ca_file.read_bytes())
        data = pkcs12.serialize_key_and_certificates(
            None, None, None, [certificate], BestAvailableEncryption(PASSWORD.encode())
        )
        return self._written("trust.p12", data)

    def key_store(self, pem_file):
        """A key and its certificate, as PKCS12."""
        pem = pem_file.read_bytes()
        data = pkcs12.serialize_key_and_certificates(
            b"me",
            load_pem_private_key(pem, None),
            load_pem_x509_certificate(pem),
            None,
            BestAvailableEncryption(PASSWORD.encode()),
        )
        return self._written(f"{pem_file.stem}.p12", data)

    def _written(self, name, data):
        file = self.directory / name
        file.write_bytes(data)
        return file
