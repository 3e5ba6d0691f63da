"""A dashboard of an embedded broker, and what its pages have."""

from contextlib import asynccontextmanager
from html.parser import HTMLParser

import anyio
import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

from sharecons.dashboard import create_app
from sharecons.dashboard.live import Live

HOSTILE = "<img src=x onerror=alert(1)>\"' &\x1b[2J\u202e"


@asynccontextmanager
async def dashboard(
    broker, *, mounted=False, auth=None, headers=None, interval=60.0, **options
):
    """Yield a client of the dashboard, once it has collected."""
    app = create_app(
        bootstrap_servers=broker.bootstrap_servers, interval=interval, **options
    )
    outer = Starlette(routes=[Mount("/queues", app)]) if mounted else app
    base = "http://localhost" + ("/queues" if mounted else "")
    transport = httpx.ASGITransport(outer)
    async with Client(
        transport=transport, base_url=base, auth=auth, headers=headers
    ) as http:
        await http.get("/")
        http.live = app.state.dashboard.live
        with anyio.fail_after(10):
            await http.live.wait_for_change(0)
        try:
            yield http
        finally:
            await app.state.dashboard.aclose()


class Client(httpx.AsyncClient):
    """Sends requests to a dashboard; `live` has what its pages show."""

    live: Live


class Page(HTMLParser):
    """The texts and links of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.tags, self.words = [], [], []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        self.words.append(data)
