"""Certificates and keys that are renewed on disk while a client runs."""

import ssl

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509 import load_pem_x509_certificate

from sharecons import Security
from sharecons.properties.security import build_security
from tests.config.authority import PASSWORD

HOST = "127.0.0.1"


@pytest.fixture
def server(authority):
    """Return the context of a broker that requires certificates of clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue(HOST, stem="renewing-broker"))
    context.load_verify_locations(authority.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def own(authority, tmp_path):
    """Return the file of a client's certificate."""
    return renew(authority, tmp_path / "own.pem")


def renew(authority, file):
    """Replace a file by one with another certificate and key."""
    return authority.issue("me@example.org", stem="renewed").replace(file)


def connect(security, server):
    """Make a handshake of a new connection; return the client's serial number."""
    security.tls_files.refresh(security.ssl_context)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = security.ssl_context.wrap_bio(
        to_client, to_server, server_hostname=HOST
    )
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    for step in (client_side.do_handshake, server_side.do_handshake) * 2:
        try:
            step()
        except ssl.SSLWantReadError:
            pass
    return int((server_side.getpeercert() or {"serialNumber": "0"})["serialNumber"], 16)


def serial_of(file):
    return load_pem_x509_certificate(file.read_bytes()).serial_number


def test_renewed_certificate_is_used_by_the_next_connection(authority, server, own):
    security = Security.tls(ca_file=authority.ca_file, cert_file=own)
    before = connect(security, server)

    renew(authority, own)

    assert serial_of(own) == connect(security, server) != before


def test_unchanged_files_are_not_loaded_again(authority, server, own, caplog):
    caplog.set_level("INFO")
    security = Security.tls(ca_file=authority.ca_file, cert_file=own)

    assert connect(security, server) == connect(security, server)
    assert [] == caplog.messages


def test_certificate_before_its_key_leaves_the_earlier_ones(
    authority, server, tmp_path, caplog
):
    caplog.set_level("INFO")
    pem = renew(authority, tmp_path / "both.pem")
    key, chain = split(pem, tmp_path)
    security = Security.tls(ca_file=authority.ca_file, cert_file=chain, key_file=key)
    before = connect(security, server)
    new_key, new_chain = split(renew(authority, pem), tmp_path / "new")

    new_chain.replace(chain)
    assert [before] * 2 == [connect(security, server) for _ in range(2)]
    new_key.replace(key)

    assert serial_of(chain) == connect(security, server) != before
    warning, loaded = caplog.messages
    assert "changed TLS files cannot be loaded, using the earlier ones" in warning
    assert f"cert_file {chain}, key_file {key}" in warning
    assert "changed TLS files are loaded" in loaded


def split(pem, directory):
    """Write the key and the certificate of a file to files of their own."""
    directory.mkdir(exist_ok=True)
    key, certificate = pem.read_text().split("-----BEGIN CERTIFICATE", 1)
    files = directory / "key.pem", directory / "chain.pem"
    files[0].write_text(key)
    files[1].write_text("-----BEGIN CERTIFICATE" + certificate)
    return files


def test_missing_file_leaves_the_earlier_certificate(authority, server, own):
    security = Security.tls(ca_file=authority.ca_file, cert_file=own)
    before = connect(security, server)

    own.unlink()

    assert before == connect(security, server)


def test_authority_that_is_added_to_its_file_is_trusted(
    authority, stranger, server, own, tmp_path
):
    ca_file = tmp_path / "ca.pem"
    ca_file.write_bytes(stranger.ca_file.read_bytes())
    security = Security.sasl(
        "PLAIN", "a", "b", tls=Security.tls(ca_file=ca_file, cert_file=own)
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(security, server)

    ca_file.write_bytes(ca_file.read_bytes() + authority.ca_file.read_bytes())

    assert serial_of(own) == connect(security, server)


@pytest.mark.parametrize("is_pkcs12", [True, False])
def test_renewed_files_of_properties_are_used(
    authority, server, own, tmp_path, is_pkcs12
):
    def store(name, pem):
        file = tmp_path / name
        (authority.key_store(pem) if is_pkcs12 else pem).replace(file)
        return file

    security = build_security(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(authority.ca_file),
            "ssl.keystore.location": str(store("store", own)),
            "ssl.keystore.password": PASSWORD,
        }
    )
    before = connect(security, server)

    store("store", renew(authority, tmp_path / "next.pem"))

    assert connect(security, server) not in (before, 0)


def test_certificates_of_the_system_have_no_files():
    assert Security.tls().tls_files is None
    assert build_security({"security.protocol": "SSL"}).tls_files is None


def test_wrong_password_of_a_renewed_key_is_in_no_log_line(
    authority, server, own, caplog
):
    caplog.set_level("DEBUG")
    security = build_security(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(authority.ca_file),
            "ssl.keystore.location": str(own),
            "ssl.keystore.password": "pl4nted-1",
            "ssl.key.password": "pl4nted-2",
        }
    )
    before = connect(security, server)
    renew(authority, own)
    encrypt(own)

    assert before == connect(security, server)
    assert "cannot be loaded" in caplog.text
    assert "pl4nted" not in f"{caplog.text} {[vars(r) for r in caplog.records]}"


def encrypt(pem):
    """Encrypt the key of a file with another password than the client's."""
    key = load_pem_private_key(pem.read_bytes(), None)
    chain = pem.read_bytes().partition(b"-----BEGIN CERTIFICATE")
    private = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"other")
    )
    pem.write_bytes(private + b"".join(chain[1:]))
