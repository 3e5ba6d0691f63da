"""What goes wrong with TLS, in words that say what to do about it."""

from ssl import SSLCertVerificationError, SSLError
from typing import Final

from sharecons.errors import AuthenticationError, ConnectionFailedError, Error

__all__ = ["HANDSHAKE_CLOSED", "map_tls_error"]

HANDSHAKE_CLOSED: Final = (
    "the broker closed the connection in the midst of the TLS handshake; is this a TLS "
    "listener? (security.protocol SSL or SASL_SSL, and not PLAINTEXT, on its side)"
)

NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
"""What OpenSSL says of bytes that are none of TLS."""

CERTIFICATE_ALERTS: Final = (
    "CERTIFICATE_REQUIRED",
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "UNSUPPORTED_CERTIFICATE",
    "UNKNOWN_CA",
    "ACCESS_DENIED",
)
"""Alerts about our own certificate."""


def map_tls_error(error: SSLError, action: str) -> Error:
    """Make an error of ours of one of OpenSSL's; `doing` says what, and with whom."""
    if isinstance(error, SSLCertVerificationError):
        return AuthenticationError(
            f"{action}: the broker's certificate was not believed: "
            f"{error.verify_message.rstrip('.')}; see ca_file "
            "(ssl.truststore.location, ssl.ca.location), or check_hostname "
            "(ssl.endpoint.identification.algorithm)"
        )
    reason = getattr(error, "reason", None) or ""  # those raised in Python have none
    if reason in NOT_TLS:
        return ConnectionFailedError(
            f"{action}: what answers speaks no TLS; connect with security.protocol "
            "PLAINTEXT or SASL_PLAINTEXT, or to another port"
        )
    if "ALERT" in reason and reason.endswith(CERTIFICATE_ALERTS):
        return AuthenticationError(
            f"{action}: the broker wants a certificate of ours that it can believe "
            f"({_readable(reason)}); see cert_file and key_file (ssl.keystore.location)"
        )
    return ConnectionFailedError(f"{action}: TLS: {_readable(reason) or error}")


def _readable(reason: str) -> str:
    return reason.replace("_", " ").lower()
