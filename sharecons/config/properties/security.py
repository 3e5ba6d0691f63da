"""What properties say of TLS and SASL: a context, and credentials."""

import ssl
from collections.abc import Mapping
from typing import Final

from sharecons.config.properties import jaas, stores
from sharecons.config.properties.credentials import credentials_of
from sharecons.config.properties.errors import BrokenError
from sharecons.config.properties.known_properties import ALIASES
from sharecons.protocol.sasl.credentials import Credentials

__all__ = ["Parts", "expanded", "parts_of"]

Parts = tuple[ssl.SSLContext | None, Credentials | None]
"""What TLS and SASL are made with, as far as they are wanted."""

PROTOCOL: Final = "security.protocol"
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def expanded(properties: Mapping[str, str]) -> dict[str, str]:
    """Java's names for all, and a login's name and password by themselves.

    Raises:
        BrokenError: the login cannot be read.
    """
    found = {ALIASES.get(name, name): value for name, value in properties.items()}
    if jaas.NAME in found:
        options = jaas.options_of(found[jaas.NAME])
        for name in ("username", "password"):
            if name in options:
                found[f"sasl.{name}"] = options[name]
    return found


def parts_of(properties: Mapping[str, str]) -> Parts:
    """What expanded properties come to.

    Raises:
        BrokenError: what they say makes no sense.
    """
    protocol = properties.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise BrokenError(PROTOCOL, f"must be one of {known}, not {protocol!r}")
    return (
        _context(properties) if protocol.endswith("SSL") else None,
        credentials_of(properties) if "SASL" in protocol else None,
    )


def _context(properties: Mapping[str, str]) -> ssl.SSLContext:
    context = _trusting(properties)
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.strip().lower() in ("", "none"):
        context.check_hostname = False
    verify = properties.get("enable.ssl.certificate.verification", "true")
    if verify.strip().lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _show_certificate(context, properties)
    return context


def _trusting(properties: Mapping[str, str]) -> ssl.SSLContext:
    password = properties.get("ssl.truststore.password", "")
    name = "ssl.truststore.certificates"
    if text := properties.get(name):
        data = stores.inline(text)
    else:
        name = "ssl.truststore.location"
        path = properties.get(name, "").strip()
        # librdkafka's word for the system's own.
        if path in ("", "probe"):
            return ssl.create_default_context()
        data = stores.read(name, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusted = stores.certificates_of(name, data, password)
    stores.loading(name, lambda: context.load_verify_locations(cadata=trusted))
    return context


def _show_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    key_password = properties.get("ssl.key.password", "")
    if chain := properties.get("ssl.keystore.certificate.chain"):
        name = "ssl.keystore.key"
        pem = stores.inline(properties.get(name, "")) + b"\n" + stores.inline(chain)
    elif path := properties.get("ssl.keystore.location"):
        name = "ssl.keystore.location"
        password = properties.get("ssl.keystore.password", "")
        pem = stores.keys_of(name, stores.read(name, path.strip()), password)
    elif path := properties.get("ssl.certificate.location"):
        name = "ssl.certificate.location"
        pem = stores.read(name, path.strip())
        if key := properties.get("ssl.key.location"):
            pem = stores.read("ssl.key.location", key.strip()) + b"\n" + pem
    else:
        return
    stores.add_certificate(context, name, pem, key_password)
