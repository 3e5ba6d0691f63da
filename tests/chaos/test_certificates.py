"""Certificates of chaos runs, without brokers."""

from pathlib import Path

from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

from tests.chaos.certificates import Certificates


def test_new_authority_is_trusted_beside_the_earlier_one(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "secrets", "PROXIED")
    first = certificates.ca_file.read_bytes()

    certificates.add_authority()

    trusted = certificates.ca_file.read_bytes()
    assert trusted.startswith(first)
    assert 2 == len(load_pem_x509_certificates(trusted))


def test_certificate_of_clients_is_replaced_and_can_expire_soon(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "secrets", "PROXIED")
    before = load_pem_x509_certificate(certificates.cert_file.read_bytes())

    certificates.renew_client(15.0)

    after = load_pem_x509_certificate(certificates.cert_file.read_bytes())
    assert after.serial_number != before.serial_number
    assert after.not_valid_after_utc < before.not_valid_after_utc


def test_brokers_have_other_files_at_each_start(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "secrets", "PROXIED")

    name = "listener.name.proxied.ssl.keystore.location"
    assert certificates.config[name] != certificates.config[name]
