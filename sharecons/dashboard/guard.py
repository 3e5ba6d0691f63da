"""Access rules: the only way to the dashboard's routes.

Rule 1: without a password or token, only names of the loopback interface are served, so
that a page of another site cannot reach it by a name of its own (DNS rebinding).
Rule 2: secrets are compared in constant time. A session is a cookie, signed with a key
of this process: it ends with the process.
Rule 3: a change comes from a page of this origin, or it is refused.
Rule 4: a page loads nothing from elsewhere, runs no inline script, and is in no frame.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import URL, Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Access", "Guard", "Role", "User"]

Role = Literal["read", "change"]

COOKIE: Final = "sharecons-session"
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src "
    "'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class User(NamedTuple):
    """The sender of a request, for the log of changes, with a role."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The secrets that requests can have, and the roles that they give.

    Attributes:
        token: gives the role `change`; None if no token is set.
        read_token: gives the role `read`.
        passwords: by user.
        allows_changes: False refuses all changes.
    """

    token: str | None = None
    read_token: str | None = None
    passwords: Mapping[str, str] | None = None
    allows_changes: bool = False

    @property
    def is_open(self) -> bool:
        """True if no secret is set: only the loopback interface is served."""
        return not (self.token or self.read_token or self.passwords)

    def user_of(self, authorization: str) -> User | None:
        """Return the sender of this header; None if it is unknown."""
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() == "bearer":
            return self.user_of_token(text.strip())
        if scheme.lower() == "basic":
            return self._user_of_password(text.strip())
        return None

    def user_of_token(self, token: str) -> User | None:
        if self.token is not None and _equal(token, self.token):
            return User("token", "change")
        if self.read_token is not None and _equal(token, self.read_token):
            return User("read token", "read")
        return None

    def _user_of_password(self, text: str) -> User | None:
        try:
            name, _, password = (
                base64.b64decode(text, validate=True).decode().partition(":")
            )
        except ValueError:
            return None
        # An unknown name takes as long as a wrong password.
        known = (self.passwords or {}).get(name)
        is_right = _equal(password, secrets.token_hex() if known is None else known)
        if is_right and known is not None:
            return User(name, "change")
        # Browsers have a dialog for a name and a password, and none for a token.
        return self.user_of_token(password)


class Guard:
    """An ASGI middleware; `scope["user"]` has who sent the request."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._key = secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        early = self._early_response(scope, headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if early is not None:
            await early(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def session_of(self, user: User) -> str:
        """Return the value of a session's cookie."""
        text = base64.urlsafe_b64encode(f"{user.role}:{user.name}".encode()).decode()
        return f"{text}.{self._signature(text)}"

    def _session_response(self, scope: Scope) -> Response | None:
        """Return the response to an address with a token: a session, without it."""
        url = URL(scope=scope)
        tokens = parse_qs(url.query).get("token")
        user = self._access.user_of_token(tokens[0]) if tokens else None
        if user is None or scope["method"] != "GET":
            return None
        response = RedirectResponse(str(url.remove_query_params("token")), 303)
        response.set_cookie(
            COOKIE,
            self.session_of(user),
            path=scope.get("root_path") or "/",
            secure=scope["scheme"] == "https",
            httponly=True,
            # Not strict: a browser that follows a link from another site, as in a chat,
            # would not send it after the redirect. Rule 3 protects changes.
            samesite="lax",
        )
        return response

    def _early_response(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request that does not reach the application."""
        if self._access.is_open:
            user: User | None = User("local", "change")
            if _host_of(headers) not in LOOPBACK:
                return PlainTextResponse(
                    "without a token or password only localhost is served: open "
                    "http://localhost, or set a token\n",
                    403,
                )
        else:
            user = self._user(headers)
        if (session := self._session_response(scope)) is not None:
            return session
        if user is None:
            return PlainTextResponse(
                "a token or a user and password is needed\n",
                401,
                {"WWW-Authenticate": 'Basic realm="sharecons", charset="UTF-8"'},
            )
        scope["user"] = user
        if scope["method"] in SAFE:
            return None
        if not _is_same_origin(headers):
            return PlainTextResponse("a request of another site is refused\n", 403)
        if not self._access.allows_changes or user.role != "change":
            return PlainTextResponse("changes are not allowed\n", 403)
        return None

    def _user(self, headers: Headers) -> User | None:
        if authorization := headers.get("authorization"):
            return self._access.user_of(authorization)
        session = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        text, _, signature = session.partition(".")
        if not text or not _equal(signature, self._signature(text)):
            return None
        role, _, name = base64.urlsafe_b64decode(text).decode().partition(":")
        return User(name, "change" if role == "change" else "read")

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _host_of(headers: Headers) -> str | None:
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        return None


def _is_same_origin(headers: Headers) -> bool:
    """Return whether a page of this origin sent the request, or no page at all."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    if origin is None:
        return "cookie" not in headers  # a command, such as curl
    return urlsplit(origin).netloc == headers.get("host")
