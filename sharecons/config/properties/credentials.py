"""What properties say of SASL."""

from collections.abc import Mapping
from typing import Final

from sharecons.config.properties import jaas
from sharecons.config.properties.errors import BrokenError, check
from sharecons.config.validation import check_unicode
from sharecons.protocol.sasl.credentials import (
    MECHANISMS,
    OAUTHBEARER,
    Credentials,
    TokenSource,
)

__all__ = ["credentials_of"]

MECHANISM: Final = "sasl.mechanism"
ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
CLAIM: Final = "unsecuredLoginStringClaim_"
EXTENSION: Final = "extension_"
LIFETIME: Final = "unsecuredLoginLifetimeSeconds"


def credentials_of(properties: Mapping[str, str]) -> Credentials:
    """A mechanism, and what it takes.

    Raises:
        BrokenError: there is no such mechanism, or it lacks something.
    """
    mechanism = properties.get(MECHANISM, "GSSAPI").strip().upper()
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        default = "" if MECHANISM in properties else " (Kafka's default)"
        raise BrokenError(
            MECHANISM, f"{mechanism}{default} is not spoken here, only {known}"
        )
    if mechanism == OAUTHBEARER:
        return _bearer(properties)
    return _named(mechanism, properties)


def _named(mechanism: str, properties: Mapping[str, str]) -> Credentials:
    for name in ("sasl.username", "sasl.password"):
        if not properties.get(name):
            raise BrokenError(
                name, f"missing, or {name[5:]} in {jaas.NAME}: {mechanism} needs it"
            )
        check(name, check_unicode, properties[name])
    if _options(properties).get("tokenauth", "").lower() == "true":
        raise BrokenError(
            jaas.NAME, "delegation tokens (tokenauth) are not spoken here"
        )
    return Credentials(
        mechanism=mechanism,
        username=properties["sasl.username"],
        password=properties["sasl.password"],
    )


def _bearer(properties: Mapping[str, str]) -> Credentials:
    options = _options(properties)
    return Credentials(
        mechanism=OAUTHBEARER,
        token=_source(properties, options),
        extensions=_with_prefix(EXTENSION, options),
    )


def _source(properties: Mapping[str, str], options: Mapping[str, str]) -> TokenSource:
    # Loads what asks servers, of which only tokens have some.
    from sharecons.config.properties import tokens

    if claims := _with_prefix(CLAIM, options):
        return tokens.unsecured(claims, float(options.get(LIFETIME, tokens.LIFETIME)))
    url = properties.get(ENDPOINT, "").strip()
    scheme = url.partition(":")[0].lower()
    if scheme == "file":
        return tokens.from_file(url)
    if scheme not in ("http", "https"):
        raise BrokenError(
            ENDPOINT,
            "missing: OAUTHBEARER needs an http, https or file address of tokens "
            "(programs give a function: Security.oauthbearer)",
        )
    who, secret, scope = (
        options.get(option) or properties.get(f"sasl.oauthbearer.{name}", "")
        for option, name in (
            ("clientId", "client.id"),
            ("clientSecret", "client.secret"),
            ("scope", "scope"),
        )
    )
    if not who or not secret:
        raise BrokenError(
            ENDPOINT, f"needs clientId and clientSecret, in {jaas.NAME} or by name"
        )
    return tokens.from_endpoint(url, who, secret, scope)


def _options(properties: Mapping[str, str]) -> Mapping[str, str]:
    text = properties.get(jaas.NAME)
    return jaas.options_of(text) if text else {}


def _with_prefix(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in options.items()
        if name.startswith(prefix)
    }
