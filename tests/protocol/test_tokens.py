"""The syntax and the expiry of OAUTHBEARER tokens, and when to authenticate again."""

import json
from base64 import urlsafe_b64encode

import pytest

from sharecons.properties.tokens import unsecured
from sharecons.protocol.sasl.renewal import MAX_DELAY, Renewal
from sharecons.protocol.sasl.tokens import expiry_of, is_token


def web_token(claims):
    payload = urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{payload}.signature"


@pytest.mark.parametrize("value", ["abc", "a.b.c", "a~_-+/==", "0"])
def test_token_has_letters_digits_and_few_marks(value):
    assert is_token(value)


@pytest.mark.parametrize("value", [None, b"abc", "", "a b", "abc\n", "=", "é", ["a"]])
def test_other_values_are_no_tokens(value):
    assert not is_token(value)


def test_expiry_of_a_web_token_is_its_claim():
    assert 1700000000 == expiry_of(web_token({"exp": 1700000000}))
    assert 1.5 == expiry_of(web_token({"sub": "ä", "exp": 1.5}))
    assert expiry_of(unsecured({"sub": "me"})()) is not None


@pytest.mark.parametrize(
    "token",
    [
        "opaque",
        "a.b",
        "a.b.c",
        "a.!!!.c",
        "..",
        web_token({}),
        web_token([]),
        web_token({"exp": "soon"}),
        web_token({"exp": True}),
        web_token({"exp": None}),
        web_token({"exp": -(10**400)}),
        f"a.{urlsafe_b64encode(b'[' * 100_000).decode()}.c",
    ],
    ids=range(12),
)
def test_expiry_of_another_token_is_unknown(token):
    assert expiry_of(token) is None


def test_failed_renewal_is_due_again_later_and_at_the_sessions_end_at_last():
    renewal, times = Renewal(), []
    renewal.on_success(due_at=85.0, ends_at=100.0)

    now = renewal.due_at
    while renewal.on_failure(now):
        now = renewal.due_at
        times.append(now)

    waits = [b - a for a, b in zip([85.0, *times], times, strict=False)]
    assert times[-1] == 100.0
    assert waits[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert max(waits) <= MAX_DELAY


def test_failure_before_the_first_success_has_no_session():
    assert not Renewal().on_failure(0.0)


def test_backoff_starts_again_after_a_success():
    renewal = Renewal()
    renewal.on_success(due_at=85.0, ends_at=100.0)
    for _ in range(3):
        renewal.on_failure(85.0)
    renewal.on_success(due_at=185.0, ends_at=200.0)

    renewal.on_failure(185.0)

    assert renewal.due_at == pytest.approx(185.1)
