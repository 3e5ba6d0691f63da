"""The brokers' side of SASL, and tokens of identity providers."""

import json
import math
from base64 import b64encode, urlsafe_b64encode
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from sharecons.errors import Error
from sharecons.protocol.sasl.authentication import (
    Authentication,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
)
from sharecons.protocol.sasl.credentials import MECHANISMS, OAUTHBEARER, Credentials
from sharecons.protocol.sasl.tokens import expiry_of
from tests.fuzz.drawing import changed, integers, number_texts, short_texts
from tests.fuzz.target import Case, Target

__all__ = ["TARGETS"]

NONCE: Final = "rOprNGfwEbeRWgbNEkqO"
MAX_REQUESTS: Final = 4
"""The handshake, and at most three messages of a mechanism."""


def _challenges() -> SearchStrategy[bytes]:
    """Return messages of a SCRAM server, of OAUTHBEARER, and others."""
    iterations = st.sampled_from(("4096", "1", "9999999", "10000000")) | number_texts()
    salt = b64encode(b"0123456789abcdef").decode()
    first = st.builds(
        lambda suffix, count, more: f"r={NONCE}{suffix},s={salt},i={count}{more}",
        st.sampled_from(("", "3rfcNHYJY1ZVvWVs7j")),
        iterations,
        st.sampled_from(("", ",", ",x=y", ",i=4096")),
    )
    last = st.sampled_from(("v=", f"v={salt}", "e=invalid-proof", "v=not base64", "e="))
    token = st.just('{"status":"invalid_token","scope":"kafka"}')
    return changed((first | last | token | short_texts()).map(str.encode), 2)


def _responses() -> SearchStrategy[list[Any]]:
    return st.tuples(
        st.just(0) | integers(16),
        st.none() | short_texts(),
        _challenges() | st.binary(max_size=20),
        st.floats(0, 1e9) | st.just(0.0),
    ).map(list)


def _check(case: Case) -> None:
    mechanism, handshake, offered, responses = case
    token = "abc.def.ghi" if mechanism == OAUTHBEARER else ""
    credentials = Credentials(
        mechanism=mechanism, username="alice", password="secret", token=lambda: token
    )
    authentication = Authentication(
        credentials, broker="b:9092", nonce=NONCE, token=token
    )
    count = 0
    left = list(responses)
    while (request := authentication.next_request(1.0)) is not None:
        count += 1
        assert count <= MAX_REQUESTS, "an exchange ends"
        if isinstance(request, SaslHandshake):
            response: Any = SaslHandshakeResponse(
                error=handshake, mechanisms=tuple(offered)
            )
        elif left:
            error, message, payload, lifetime = left.pop(0)
            response = SaslAuthenticateResponse(
                error=error, message=message, payload=payload, session_lifetime=lifetime
            )
        else:
            return
        authentication.on_response(request, response)
    assert authentication.finished
    assert authentication.error is None or isinstance(authentication.error, Error)


def _tokens() -> SearchStrategy[str]:
    claims = st.builds(
        lambda name, value: f'{{"{name}": {value}}}',
        st.sampled_from(("exp", "iat")),
        number_texts() | st.sampled_from(("null", "true", "NaN", "[" * 9000, '"1"')),
    )
    bodies = changed((claims | st.just(json.dumps({"exp": 1}))).map(str.encode), 1)
    return bodies.map(
        lambda body: f"e30.{urlsafe_b64encode(body).decode().rstrip('=')}.s"
    )


def _check_token(token: Case) -> None:
    expiry = expiry_of(token)
    # It is compared with the time, and subtracted from it.
    assert expiry is None or not math.isnan(1.0 - expiry) or math.isnan(expiry)


TARGETS: Final = (
    Target(
        name="sasl",
        cases=st.tuples(
            st.sampled_from(MECHANISMS),
            st.sampled_from((0, 0, 0, 33, 34)) | integers(16),
            st.lists(short_texts(), max_size=2),
            st.lists(_responses(), max_size=4),
        ),
        check=_check,
        modules=("protocol.sasl",),
        seconds=1.0,
        examples=200,
    ),
    Target(
        name="tokens",
        cases=_tokens() | short_texts(),
        check=_check_token,
        modules=("protocol.sasl.tokens",),
        examples=200,
    ),
)
