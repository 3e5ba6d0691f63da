"""`Security` from properties: an SSL context for TLS, and credentials for SASL."""

import ssl
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from sharecons.config.security import Security, TlsFiles
from sharecons.errors import ConfigurationError
from sharecons.escaping import to_file_name
from sharecons.properties import jaas, stores
from sharecons.properties.credentials import build_credentials
from sharecons.properties.errors import PropertyError
from sharecons.properties.known_properties import ALIASES, SUPPORTED

__all__ = ["build_security", "expand", "missing_protocol"]

PROTOCOL: Final = "security.protocol"
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

FILES: Final = (
    "ssl.truststore.location",
    "ssl.keystore.location",
    "ssl.certificate.location",
    "ssl.key.location",
)
"""Files that are loaded again after they have changed."""

_CERTIFICATE_OF_KEY: Final[Mapping[str, str]] = {
    "ssl.key.location": "ssl.certificate.location",
    "ssl.keystore.key": "ssl.keystore.certificate.chain",
}


def expand(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties under Java's names.

    The username and password in `sasl.jaas.config` become `sasl.username` and
    `sasl.password`.

    Raises:
        PropertyError: `sasl.jaas.config` is invalid.
    """
    found = {ALIASES.get(name, name): value for name, value in properties.items()}
    if jaas.NAME in found:
        options = jaas.parse_options(found[jaas.NAME])
        for name in ("username", "password"):
            if name in options:
                found[f"sasl.{name}"] = options[name]
    return found


def missing_protocol(properties: Mapping[str, str]) -> PropertyError | None:
    """Return an error if TLS or SASL is configured without a security protocol.

    Kafka's default is PLAINTEXT, so that these properties have no effect. It is only a
    warning because Kafka's own clients accept it.

    Args:
        properties: properties from `expand`.
    """
    names = [name for name in properties if name in SUPPORTED]
    sasl = [name for name in names if name.startswith("sasl.")]
    tls = [name for name in names if name.startswith("ssl.")]
    if PROTOCOL in properties or not (sasl or tls):
        return None
    if not sasl:
        kinds, advice = "ssl.*", "SSL"
    elif tls:
        kinds, advice = "sasl.* and ssl.*", "SASL_SSL"
    else:
        kinds, advice = "sasl.*", "SASL_SSL, or SASL_PLAINTEXT without TLS"
    return PropertyError(
        (sasl + tls)[0],
        f"{kinds} properties have no effect without {PROTOCOL} (default: PLAINTEXT); "
        f"set {PROTOCOL} to {advice}",
    )


def build_security(properties: Mapping[str, str]) -> Security:
    """Return TLS and SASL for properties from `expand`.

    Raises:
        PropertyError: a property is invalid or missing.
    """
    protocol = properties.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise PropertyError(PROTOCOL, f"must be one of {known}, not {protocol!r}")
    security = _build_tls(properties) if protocol.endswith("SSL") else Security()
    if "SASL" not in protocol:
        return security
    return replace(security, credentials=build_credentials(properties))


def _build_tls(properties: Mapping[str, str]) -> Security:
    paths = [path for name in FILES if (path := properties.get(name, "").strip())]
    files = TlsFiles(list(map(to_file_name, paths)), partial(_load_again, properties))
    if _trusts_system(properties):
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.strip().lower() in ("", "none"):
        context.check_hostname = False
    verify = properties.get("enable.ssl.certificate.verification", "true")
    if verify.strip().lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_files(properties, context)
    return Security(ssl_context=context, tls_files=files if paths else None)


def _trusts_system(properties: Mapping[str, str]) -> bool:
    path = properties.get("ssl.truststore.location", "").strip()
    # librdkafka's "probe" means the system's certificates.
    return not properties.get("ssl.truststore.certificates") and path in ("", "probe")


def _load_again(properties: Mapping[str, str], context: ssl.SSLContext) -> None:
    try:
        _load_files(properties, context)
    except PropertyError as error:
        raise ConfigurationError(str(error)) from error


def _load_files(properties: Mapping[str, str], context: ssl.SSLContext) -> None:
    if not _trusts_system(properties):
        _load_trusted(context, properties)
    _load_certificate(context, properties)


def _load_trusted(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    name = "ssl.truststore.certificates"
    if text := properties.get(name):
        data = stores.decode_pem_value(text)
    else:
        name = "ssl.truststore.location"
        data = stores.read_file(name, properties[name].strip())
    password = properties.get("ssl.truststore.password", "")
    trusted = stores.extract_certificates(name, data, password)
    stores.load_into_context(
        name, lambda: context.load_verify_locations(cadata=trusted)
    )


def _load_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    key_password = properties.get("ssl.key.password", "")
    if chain := properties.get("ssl.keystore.certificate.chain"):
        name = "ssl.keystore.key"
        pem = (
            stores.decode_pem_value(properties.get(name, ""))
            + b"\n"
            + stores.decode_pem_value(chain)
        )
    elif path := properties.get("ssl.keystore.location"):
        name = "ssl.keystore.location"
        password = properties.get("ssl.keystore.password", "")
        pem = stores.extract_key(name, stores.read_file(name, path.strip()), password)
    elif path := properties.get("ssl.certificate.location"):
        name = "ssl.certificate.location"
        pem = stores.read_file(name, path.strip())
        if key := properties.get("ssl.key.location"):
            pem = stores.read_file("ssl.key.location", key.strip()) + b"\n" + pem
    else:
        for name, certificate in _CERTIFICATE_OF_KEY.items():
            if properties.get(name):
                raise PropertyError(name, f"without {certificate}, it has no effect")
        return
    stores.add_certificate(context, name, pem, key_password)
