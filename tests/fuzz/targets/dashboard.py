"""Requests to the dashboard, by a browser or by anything else that reaches its port.

Each gets a response that is no server error, unless a broker has rejected something.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

import anyio
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from sharecons.dashboard import create_app
from sharecons.testing import EmbeddedBroker
from tests.dead_letters.letters import DEAD, new_letter, produce_letters
from tests.fuzz.drawing import changed, number_texts, texts
from tests.fuzz.target import Case, Target

__all__ = ["TARGETS"]

TOKEN: Final = "secret"
SERVER_ERROR: Final = 500
SAME_ORIGIN: Final = {"Sec-Fetch-Site": "same-origin"}
WAIT: Final = 10.0
"""Seconds for one response."""

KINDS: Final = ("redrive", "delete-letters", "offsets", "config", "delete-group", "é")
PATHS: Final = (
    *("/", "/group", "/records", "/letters", "/letter", "/preflight", "/workers"),
    *("/changes", "/confirm", "/metrics", "/style.css", "/static/page.js"),
    *("/static/../application.py", "/static/%00", "//", "/none"),
    *(f"/plan/{kind}" for kind in KINDS),
)
"""Without `/events`, whose response has no end."""

WORDS: Final = (
    *("orders", DEAD, "billing", "earliest", "latest", "yes", "no", "0", "1", "0:0"),
    *("share.isolation.level", "key=k1", "'", '"', "\\", " ", "reason~", "position="),
)
FIELDS: Final = (
    *("topic", "group", "id", "find", "order", "page", "from", "partition", "offset"),
    *("after", "filter", "redriven", "form", "all", "position", "limit", "to"),
    *("name", "value", "not_redriven", "plan", "token"),
)
HEADERS: Final = (
    *("Host", "Origin", "Sec-Fetch-Site", "Authorization", "Cookie", "Accept"),
    *("Content-Type", "Content-Length", "If-None-Match", "If-Modified-Since", "Range"),
    *("X-Forwarded-Host", "Accept-Encoding"),
)


def _ascii(text: str) -> str:
    """Return a text that a header can have: servers reject others themselves."""
    return "".join(c for c in text if " " <= c <= "ÿ" and c != "\x7f")


def _values() -> SearchStrategy[str]:
    return st.sampled_from(WORDS) | texts(*WORDS, max_parts=3) | number_texts()


def _forms() -> SearchStrategy[bytes]:
    pairs = st.lists(st.tuples(st.sampled_from(FIELDS), _values()), max_size=6)
    encoded = pairs.map(lambda each: urlencode(each, errors="replace").encode())
    many = st.sampled_from((b"a=1&" * 300, b"a" * 70_000))
    return changed(encoded, max_changes=2) | encoded | many


def _credentials() -> SearchStrategy[str]:
    pairs = st.binary(max_size=12).map(lambda each: base64.b64encode(each).decode())
    known = (f"Bearer {TOKEN}", "Bearer", "Basic", "Basic !", "Basic =", "Digest x")
    return st.sampled_from(known) | pairs.map(lambda each: f"Basic {each}")


def _headers() -> SearchStrategy[Mapping[str, str]]:
    values = _credentials() | texts("http://", "localhost", "[", "]", ":", "=", ";")
    return st.dictionaries(st.sampled_from(HEADERS), values.map(_ascii), max_size=3)


def _requests() -> SearchStrategy[list[Any]]:
    return st.tuples(
        st.sampled_from(("GET", "POST", "HEAD", "PUT", "OPTIONS", "TRACE")),
        st.sampled_from(PATHS),
        _forms(),
        _headers(),
        _forms() | st.binary(max_size=64),
    ).map(list)


def _check(case: Case) -> None:
    anyio.run(_send_all, case)


async def _send_all(case: Sequence[Any]) -> None:
    has_token, requests = case
    async with EmbeddedBroker(topics={"orders": 2, DEAD: 1}) as broker:
        produce_letters(broker, [new_letter(number) for number in range(3)])
        app = create_app(
            bootstrap_servers=broker.bootstrap_servers,
            interval=60.0,
            timeout=5.0,
            token=TOKEN if has_token else None,
            allow_changes=True,
        )
        try:
            for request in requests:
                await _send(app, *request)
        finally:
            await app.state.dashboard.aclose()


async def _send(
    app: Any,
    method: str,
    path: str,
    query: bytes,
    headers: Mapping[str, str],
    body: bytes,
) -> None:
    """Send a request as servers pass it on: they reject malformed ones themselves."""
    usual = {"Host": "localhost", "Authorization": f"Bearer {TOKEN}", **SAME_ORIGIN}
    encoded = [
        (name.lower().encode(), value.encode("latin-1"))
        for name, value in {**usual, **headers}.items()
    ]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": quote(query, safe="=&%+").encode(),
        "root_path": "",
        "headers": encoded,
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 9933),
    }
    received = iter([{"type": "http.request", "body": body, "more_body": False}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(received, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message)

    with anyio.fail_after(WAIT):
        await app(scope, receive, send)
    assert sent[0]["status"] < SERVER_ERROR, sent


TARGETS: Final = (
    Target(
        name="dashboard",
        cases=st.tuples(
            st.booleans(), st.lists(_requests(), min_size=1, max_size=3)
        ).map(list),
        check=_check,
        modules=("dashboard",),
        seconds=5.0,
        memory=96 << 20,
        traces=False,
        examples=40,
    ),
)
