"""A token function that returns anything, raises or hangs, on one connection."""

import asyncio
import logging
import time
from functools import partial

import anyio
import pytest

from sharecons.errors import AuthenticationError, ConnectionFailedError, Error
from sharecons.net.io.sasl import SaslSession, SaslSessions
from sharecons.properties.tokens import unsecured
from sharecons.protocol.codes import Code
from sharecons.protocol.grace_period import DURATION, GracePeriod
from sharecons.protocol.sasl.authentication import (
    SaslAuthenticate,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
)
from sharecons.protocol.sasl.credentials import OAUTHBEARER, Credentials
from tests.hostile import NoAttributes, NoText, nested_groups, no_name

pytestmark = pytest.mark.anyio

LIFETIME = 300.0
GOOD = "good"
EXPIRED = unsecured({"sub": "me"}, lifetime=-5)()
WRONG = [None, b"token", "", "two words", "line\n", 7, ("token", 3600), object()]
FAILURES = [*WRONG, OSError("the vault is shut"), "hang"]


def name_of(value):
    """Return the name of a parameter, the same in each process."""
    if value is EXPIRED:
        return "expired"
    return "object" if type(value) is object else repr(value)


class Tokens:
    """A token function that returns, raises or does the next of some things."""

    def __init__(self, *tokens):
        self.tokens = list(tokens)
        self.calls = []

    async def __call__(self):
        self.calls.append(anyio.current_time())
        token = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        if token == "hang":
            await anyio.sleep_forever()
        if isinstance(token, Exception):
            raise token
        return token


class Listener:
    """The responses of a listener that accepts one token."""

    def __init__(self, token=GOOD):
        self._token = token
        self.accepted = 0

    async def send(self, request):
        await anyio.lowlevel.checkpoint()
        if isinstance(request, SaslHandshake):
            return SaslHandshakeResponse(error=Code.NONE, mechanisms=(OAUTHBEARER,))
        assert isinstance(request, SaslAuthenticate)
        accepted = f"Bearer {self._token}\x01".encode() in request.payload
        self.accepted += accepted
        return SaslAuthenticateResponse(
            error=Code.NONE if accepted else Code.SASL_AUTHENTICATION_FAILED,
            message=None if accepted else "invalid token",
            payload=b"",
            session_lifetime=LIFETIME,
        )


def new_sessions(tokens):
    return SaslSessions(Credentials(mechanism=OAUTHBEARER, token=tokens), GracePeriod())


async def connect(sessions, listener):
    session = SaslSession(sessions, "b:1")
    await session.authenticate(listener.send)
    return session


async def send_until(session, listener, end):
    """Authenticate when it is due, as each request of a connection does."""
    while anyio.current_time() < end:
        if session.is_due:
            await session.authenticate(listener.send)
        await anyio.sleep(0.5)


@pytest.mark.parametrize("wrong", WRONG, ids=name_of)
async def test_wrong_token_at_start_is_an_error_that_names_the_function(wrong):
    def fetch_token():
        return wrong

    for function in (fetch_token, partial(fetch_token)):
        with pytest.raises(AuthenticationError) as caught:
            await connect(new_sessions(function), Listener())

        message = str(caught.value)
        assert "connecting to b:1: the token function in `security`" in message
        assert "fetch_token) returned " in message
        assert "it must return the token as a str" in message
        assert not isinstance(wrong, str) or not wrong or wrong not in message


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "make", [NoText, NoAttributes, no_name, nested_groups, asyncio.CancelledError]
)
async def test_hostile_exception_of_a_token_function_is_an_error_that_names_it(
    make, is_async
):
    def fetch_token():
        raise make()

    async def fetch_token_async():
        raise make()

    function = fetch_token_async if is_async else fetch_token
    with pytest.raises(ConnectionFailedError) as caught:
        await connect(new_sessions(function), Listener())

    text = str(caught.value)
    caught.value.__cause__ = None  # pytest cannot show it
    assert f"{function.__name__}) raised " in text


async def test_token_that_cannot_be_inspected_is_an_error_that_names_the_function():
    class Token:
        def __getattribute__(self, name):
            raise LookupError(name)

    with pytest.raises(ConnectionFailedError) as caught:
        await connect(new_sessions(lambda: Token()), Listener())

    assert "<lambda>) raised LookupError: " in str(caught.value)


async def test_token_function_that_hangs_at_start_is_named_before_the_timeout():
    with anyio.fail_after(5), pytest.raises(ConnectionFailedError) as caught:
        await connect(new_sessions(Tokens("hang")), Listener())

    assert "(Tokens) did not return within 4 s" in str(caught.value)


@pytest.mark.parametrize("failure", [*FAILURES, EXPIRED], ids=name_of)
async def test_bad_token_at_renewal_is_requested_again_while_the_session_lasts(
    failure, caplog
):
    tokens, listener = Tokens(GOOD, failure, failure, GOOD), Listener()
    session = await connect(new_sessions(tokens), listener)
    started = anyio.current_time()

    with caplog.at_level(logging.INFO, "sharecons"):
        await send_until(session, listener, started + LIFETIME)

    assert len(tokens.calls) == 4
    assert listener.accepted == 2
    warning, end = [record.getMessage() for record in caplog.records]
    assert "authenticating again has failed; retrying while the session" in warning
    assert "the token function in `security`" in warning
    assert "authenticated again" in end


@pytest.mark.parametrize("failure", FAILURES, ids=name_of)
async def test_bad_tokens_until_the_end_of_the_session_are_an_error(failure):
    tokens, listener = Tokens(GOOD, failure), Listener()
    session = await connect(new_sessions(tokens), listener)
    started = anyio.current_time()

    with pytest.raises(Error, match="the token function in `security`") as caught:
        await send_until(session, listener, started + 2 * LIFETIME)

    assert LIFETIME <= anyio.current_time() - started < LIFETIME + 12
    assert len(tokens.calls) < 20
    assert failure in WRONG or caught.value.retriable
    assert failure not in WRONG or isinstance(caught.value, AuthenticationError)


async def test_bad_tokens_after_the_end_of_the_session_are_retriable_for_seconds():
    sessions, listener = new_sessions(Tokens(GOOD, None)), Listener()
    session = await connect(sessions, listener)
    await anyio.sleep(2 * LIFETIME)

    with pytest.raises(ConnectionFailedError, match="returned None"):
        await session.authenticate(listener.send)
    await anyio.sleep(DURATION)
    with pytest.raises(AuthenticationError, match="returned None"):
        await connect(sessions, listener)


async def test_late_renewal_is_accepted():
    listener = Listener()
    session = await connect(new_sessions(Tokens(GOOD)), listener)
    await anyio.sleep(2 * LIFETIME)

    assert session.is_due
    await session.authenticate(listener.send)
    assert not session.is_due


@pytest.mark.parametrize("bad", ["revoked", None], ids=repr)
async def test_bad_token_of_a_new_connection_is_retriable_while_a_session_lasts(bad):
    """A broker that rejects a token closes the connection."""
    sessions, listener = new_sessions(Tokens(GOOD, bad)), Listener()
    session = await connect(sessions, listener)
    await anyio.sleep(0.9 * LIFETIME)

    if bad is not None:
        with pytest.raises(ConnectionFailedError, match="with another token"):
            await session.authenticate(listener.send)
    with pytest.raises(ConnectionFailedError, match="with another token"):
        await connect(sessions, listener)
    await anyio.sleep(0.2 * LIFETIME)
    with pytest.raises(AuthenticationError):
        await connect(sessions, listener)


async def test_expired_token_is_sent_if_there_is_no_session():
    """The clocks can differ, and only the broker's decides."""
    with pytest.raises(AuthenticationError, match="invalid token"):
        await connect(new_sessions(Tokens(EXPIRED)), Listener())


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
async def test_token_is_valid_at_renewal_although_the_clock_was_set(jump, monkeypatch):
    token = unsecured({"sub": "me"}, lifetime=600)()
    listener = Listener(token)
    session = await connect(new_sessions(Tokens(token)), listener)
    await anyio.sleep(0.9 * LIFETIME)
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + jump)
    await session.authenticate(listener.send)

    assert 2 == listener.accepted


async def test_cancelled_token_function_is_no_failure(caplog):
    listener = Listener()
    session = await connect(new_sessions(Tokens(GOOD, "hang")), listener)
    await anyio.sleep(0.9 * LIFETIME)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.authenticate, listener.send)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert not caplog.records


async def test_plain_function_that_takes_long_is_not_interrupted():
    def token():
        time.sleep(0.01)  # real time: a plain function blocks the event loop
        return GOOD

    session = await connect(new_sessions(token), Listener())

    assert not session.is_due
