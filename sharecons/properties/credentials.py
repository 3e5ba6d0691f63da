"""SASL credentials from properties."""

import math
from collections.abc import Mapping
from typing import Final

from sharecons.config.validation import check_unicode
from sharecons.properties import jaas
from sharecons.properties.errors import PropertyError, check_property
from sharecons.protocol.sasl.credentials import (
    MECHANISMS,
    OAUTHBEARER,
    Credentials,
    TokenSource,
)

__all__ = ["build_credentials"]

MECHANISM: Final = "sasl.mechanism"
ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
CLAIM_PREFIX: Final = "unsecuredLoginStringClaim_"
EXTENSION_PREFIX: Final = "extension_"
LIFETIME: Final = "unsecuredLoginLifetimeSeconds"


def build_credentials(properties: Mapping[str, str]) -> Credentials:
    """Return the credentials for the mechanism that the properties name.

    Raises:
        PropertyError: the mechanism is not supported, or a property is missing.
    """
    mechanism = properties.get(MECHANISM, "GSSAPI").strip().upper()
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        default = "" if MECHANISM in properties else " (Kafka's default)"
        raise PropertyError(
            MECHANISM, f"{mechanism}{default} is not supported; use one of {known}"
        )
    if mechanism == OAUTHBEARER:
        return _oauthbearer_credentials(properties)
    return _password_credentials(mechanism, properties)


def _password_credentials(mechanism: str, properties: Mapping[str, str]) -> Credentials:
    for name in ("sasl.username", "sasl.password"):
        if not properties.get(name):
            raise PropertyError(
                name, f"missing: {mechanism} needs it, or {name[5:]} in {jaas.NAME}"
            )
        check_property(name, check_unicode, properties[name])
    if _jaas_options(properties).get("tokenauth", "").lower() == "true":
        raise PropertyError(
            jaas.NAME, "delegation tokens (tokenauth) are not supported"
        )
    return Credentials(
        mechanism=mechanism,
        username=properties["sasl.username"],
        password=properties["sasl.password"],
    )


def _oauthbearer_credentials(properties: Mapping[str, str]) -> Credentials:
    options = _jaas_options(properties)
    return Credentials(
        mechanism=OAUTHBEARER,
        token=_token_source(properties, options),
        extensions=_with_prefix(EXTENSION_PREFIX, options),
    )


def _token_source(
    properties: Mapping[str, str], options: Mapping[str, str]
) -> TokenSource:
    # Imported here: it imports urllib, which only OAUTHBEARER needs.
    from sharecons.properties import tokens

    if claims := _with_prefix(CLAIM_PREFIX, options):
        return tokens.unsecured(claims, _lifetime(options, tokens.LIFETIME))
    url = properties.get(ENDPOINT, "").strip()
    scheme = url.partition(":")[0].lower()
    if scheme == "file":
        return _from_file(url)
    if scheme not in ("http", "https"):
        raise PropertyError(
            ENDPOINT,
            "missing: OAUTHBEARER needs the http, https or file URL of its tokens "
            "(programs can pass a function to Security.oauthbearer instead)",
        )
    client_id, secret, scope = (
        options.get(option) or properties.get(f"sasl.oauthbearer.{name}", "")
        for option, name in (
            ("clientId", "client.id"),
            ("clientSecret", "client.secret"),
            ("scope", "scope"),
        )
    )
    if not client_id or not secret:
        raise PropertyError(
            ENDPOINT,
            f"needs clientId and clientSecret in {jaas.NAME}, or the properties "
            "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret",
        )
    return tokens.from_endpoint(url, client_id, secret, scope)


def _lifetime(options: Mapping[str, str], default: float) -> float:
    try:
        lifetime = float(options.get(LIFETIME, default))
    except ValueError:
        lifetime = math.nan
    if not math.isfinite(lifetime):
        raise PropertyError(
            jaas.NAME,
            f"{LIFETIME} must be a number of seconds, not {options[LIFETIME]!r}",
        )
    return lifetime


def _from_file(url: str) -> TokenSource:
    from sharecons.properties import tokens

    try:
        return tokens.from_file(url)
    except ValueError as error:
        raise PropertyError(ENDPOINT, f"{url!r} is not a URL: {error}") from error


def _jaas_options(properties: Mapping[str, str]) -> Mapping[str, str]:
    text = properties.get(jaas.NAME)
    return jaas.parse_options(text) if text else {}


def _with_prefix(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in options.items()
        if name.startswith(prefix)
    }
