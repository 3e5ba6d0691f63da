"""TLS and SCRAM of a run: certificates that are renewed and expire, and a password.

Brokers require certificates of clients. Each renewal of a broker's certificate has a
file of its own, which the broker loads after a change of its config. Files of clients
keep their names, as a secret that Kubernetes mounts, and are replaced.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import trustme
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tests.chaos.clients import USER

__all__ = ["Certificates"]

TIMEOUT: Final = 20.0
SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class Certificates:
    """The certificates of one run, and the password of its user.

    Attributes:
        client: the properties of clients, as paths of files.
    """

    def __init__(self, directory: Path, listener: str) -> None:
        directory.mkdir()
        self._directory = directory
        self._prefix = f"listener.name.{listener.lower()}"
        self._issued = 0
        self._passwords = 0
        self._trusted = [trustme.CA()]
        self.ca_file = directory / "ca.pem"
        self.cert_file = directory / "client.pem"
        self.password_file = directory / "password"
        self._write_trusted()
        self.renew_client()

    @property
    def config(self) -> dict[str, str]:
        """The settings of brokers at their start."""
        return {
            **self._broker_files(),
            f"{self._prefix}.ssl.keystore.type": "PEM",
            f"{self._prefix}.ssl.truststore.type": "PEM",
            f"{self._prefix}.ssl.client.auth": "required",
            f"{self._prefix}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{self._prefix}.scram-sha-512.sasl.jaas.config": SCRAM,
        }

    def add_authority(self) -> None:
        """Issue from a new authority; clients trust the earlier ones as well."""
        self._trusted.append(trustme.CA())
        self._write_trusted()

    def renew_client(self, seconds: float | None = None) -> None:
        """Replace the clients' certificate by one for these seconds."""
        self._replace(self.cert_file, self._issue("client", seconds))

    def renew_broker(
        self, servers: str, node_id: int, seconds: float | None = None
    ) -> None:
        """Let a broker load a certificate for these seconds, and all authorities."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in self._broker_files(seconds).items()
        ]
        resource = ConfigResource(
            ResourceType.BROKER, str(node_id), incremental_configs=entries
        )
        admin: Any = AdminClient({"bootstrap.servers": servers})
        admin.incremental_alter_configs([resource])[resource].result(TIMEOUT)

    def change_password(self, servers: str) -> None:
        """Change the password of the user at the brokers, and then in its file."""
        self._passwords += 1
        password = f"secret-{self._passwords}"
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(USER, info, password.encode())
        admin: Any = AdminClient({"bootstrap.servers": servers})
        admin.alter_user_scram_credentials([change])[USER].result(TIMEOUT)
        self._replace(self.password_file, password.encode())

    def _broker_files(self, seconds: float | None = None) -> Mapping[str, str]:
        self._issued += 1
        keys = self._directory / f"broker-{self._issued}.pem"
        keys.write_bytes(self._issue("127.0.0.1", seconds))
        trusted = self._directory / f"trusted-{self._issued}.pem"
        trusted.write_bytes(self.ca_file.read_bytes())
        return {
            f"{self._prefix}.ssl.keystore.location": str(keys),
            f"{self._prefix}.ssl.truststore.location": str(trusted),
        }

    def _issue(self, name: str, seconds: float | None) -> bytes:
        """Return a key, in PKCS#8 as Kafka requires, and its certificates."""
        until = None
        if seconds is not None:
            until = datetime.now(UTC) + timedelta(seconds=seconds)
        # Brokers load no renewed certificate of another subject.
        leaf = self._trusted[-1].issue_cert(
            name, common_name=name, organization_unit_name="chaos", not_after=until
        )
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return pem + b"".join(blob.bytes() for blob in leaf.cert_chain_pems)

    def _write_trusted(self) -> None:
        authorities = (each.cert_pem.bytes() for each in self._trusted)
        self._replace(self.ca_file, b"".join(authorities))

    def _replace(self, file: Path, content: bytes) -> None:
        written = file.with_suffix(".new")
        written.write_bytes(content)
        written.replace(file)
