"""Errors of TLS, with messages that say what to change."""

from collections.abc import Callable
from ssl import SSLCertVerificationError, SSLError
from typing import Final

from sharecons.errors import AuthenticationError, ConnectionFailedError, Error
from sharecons.net.io.event_loop import running_clock
from sharecons.protocol.grace_period import GracePeriod

__all__ = ["HANDSHAKE_CLOSED", "MapTlsError", "map_tls_error", "map_within_grace"]

MapTlsError = Callable[[SSLError, str], Error]
"""Returns the library's error for one of OpenSSL's, as `map_tls_error` does."""

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

NOT_VALID_NOW: Final = (9, 10)
"""OpenSSL's codes for a certificate that is not yet valid, or has expired."""


def map_tls_error(error: SSLError, action: str) -> Error:
    """Return the library's error for one of OpenSSL's.

    Args:
        action: the failed step and its broker, for the message.
    """
    if isinstance(error, SSLCertVerificationError):
        return AuthenticationError(
            f"{action}: the broker's certificate was rejected: "
            f"{error.verify_message.rstrip('.')}; {_advice(error.verify_code)}"
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
            "(ssl.keystore.location): its authority, and whether it has expired"
        )
    return ConnectionFailedError(f"{action}: TLS: {_readable(reason) or error}")


def map_within_grace(
    grace: GracePeriod, broker: str, error: SSLError, action: str
) -> Error:
    """Return a retriable error for a certificate in the broker's grace period."""
    mapped = map_tls_error(error, action)
    if not isinstance(mapped, AuthenticationError):
        return mapped
    if not grace.on_rejected(broker, running_clock()()):
        return mapped
    return ConnectionFailedError(str(mapped))


def _advice(verify_code: int) -> str:
    if verify_code in NOT_VALID_NOW:
        return (
            "renew the certificate of this broker or its authority, or correct the "
            "clock of this host"
        )
    return (
        "check the certificate of this broker, ca_file (ssl.truststore.location, "
        "ssl.ca.location) or check_hostname (ssl.endpoint.identification.algorithm)"
    )


def _readable(reason: str) -> str:
    return reason.replace("_", " ").lower()
