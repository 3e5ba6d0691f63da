"""Errors of TLS, with messages that say what to change."""

from ssl import SSLCertVerificationError, SSLError
from typing import Final

from sharecons.errors import AuthenticationError, ConnectionFailedError, Error

__all__ = ["HANDSHAKE_CLOSED", "map_tls_error"]

HANDSHAKE_CLOSED: Final = (
    "the broker closed the connection during the TLS handshake; check that this port "
    "is a TLS listener (SSL or SASL_SSL, not PLAINTEXT, in the broker's "
    "listener.security.protocol.map)"
)

NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
"""OpenSSL's reasons for bytes that are not TLS."""

CERTIFICATE_ALERTS: Final = (
    "CERTIFICATE_REQUIRED",
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "UNSUPPORTED_CERTIFICATE",
    "UNKNOWN_CA",
    "ACCESS_DENIED",
)
"""Alerts of a broker about the client's certificate."""


def map_tls_error(error: SSLError, action: str) -> Error:
    """Return the library's error for one of OpenSSL's.

    Args:
        action: what failed and with which broker, for the message.
    """
    if isinstance(error, SSLCertVerificationError):
        return AuthenticationError(
            f"{action}: the broker's certificate was rejected: "
            f"{error.verify_message.rstrip('.')}; check ca_file "
            "(ssl.truststore.location, ssl.ca.location) or check_hostname "
            "(ssl.endpoint.identification.algorithm)"
        )
    reason = (
        getattr(error, "reason", None) or ""
    )  # errors raised in Python have no reason
    if reason in NOT_TLS:
        return ConnectionFailedError(
            f"{action}: the port does not use TLS; set security.protocol to "
            "PLAINTEXT or SASL_PLAINTEXT, or use the broker's TLS port"
        )
    if "ALERT" in reason and reason.endswith(CERTIFICATE_ALERTS):
        return AuthenticationError(
            f"{action}: the broker rejected the client's certificate "
            f"({_readable(reason)}); check cert_file and key_file "
            "(ssl.keystore.location)"
        )
    return ConnectionFailedError(f"{action}: TLS: {_readable(reason) or error}")


def _readable(reason: str) -> str:
    return reason.replace("_", " ").lower()
