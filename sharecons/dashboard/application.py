"""The application: routes over what `live` has."""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from sharecons.admin import ShareGroupAdmin
from sharecons.config.security import Security
from sharecons.dashboard.change_pages import ChangePages
from sharecons.dashboard.cluster_pages import ClusterPages
from sharecons.dashboard.collecting import Dashboard
from sharecons.dashboard.group_pages import GroupPages
from sharecons.dashboard.guard import Access, Guard
from sharecons.dashboard.record_pages import RecordPages
from sharecons.dashboard.rendering import Renderer
from sharecons.dashboard.workers import Workers
from sharecons.exporter.metrics import make_registry
from sharecons.inspection.bar_svg import STYLE

__all__ = ["create_app"]


def create_app(
    *,
    bootstrap_servers: str | Sequence[str] = "localhost:9092",
    client_id: str = "sharecons-dashboard",
    security: Security | None = None,
    timeout: float = 30.0,
    groups: Iterable[str] = (),
    interval: float = 15.0,
    workers: Iterable[str] = (),
    token: str | None = None,
    read_token: str | None = None,
    passwords: Mapping[str, str] | None = None,
    allow_changes: bool = False,
    hide_values: bool = False,
) -> Starlette:
    """Return the dashboard of a cluster, as an ASGI application.

        app = Starlette(routes=[Mount("/queues", create_app(token=TOKEN))])

    Without a token or passwords only requests to localhost are served.

    Args:
        bootstrap_servers, client_id, security, timeout: as for `ShareGroupAdmin`.
        groups: patterns such as `billing-*`; none means all groups.
        interval: seconds between two collections, which all pages share.
        workers: addresses of the health ports of workers, `http://10.0.0.7:9931`.
        token: allows to read, and to change as `allow_changes` says.
        read_token: allows to read.
        passwords: by user; they allow the same as `token`.
        allow_changes: allow redrives, deletions, new offsets and configs.
        hide_values: show no keys, values and headers of records.

    Raises:
        ConfigurationError: an argument is invalid.
    """
    admin = ShareGroupAdmin(
        bootstrap_servers=bootstrap_servers,
        client_id=client_id,
        security=security,
        timeout=timeout,
    )
    known = Workers(workers)
    dashboard = Dashboard(admin, groups, interval, known)
    access = Access(
        token=token,
        read_token=read_token,
        passwords=passwords,
        allows_changes=allow_changes,
    )
    renderer = Renderer(dashboard.live, allows_changes=allow_changes)
    changes = ChangePages(dashboard.changes, renderer)
    groups_, cluster = (
        GroupPages(dashboard.live, known, renderer),
        ClusterPages(admin, known, renderer),
    )
    records = RecordPages(admin, renderer, hides_values=hide_values)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await dashboard.aclose()

    app = Starlette(
        routes=[
            Route("/", groups_.overview),
            Route("/group", groups_.group),
            Route("/events", groups_.events),
            Route("/records", records.records),
            Route("/letters", records.letters),
            Route("/letter", records.letter),
            Route("/preflight", cluster.preflight),
            Route("/workers", cluster.workers),
            Route("/changes", changes.log),
            Route("/plan/{kind}", changes.plan, methods=["POST"]),
            Route("/confirm", changes.confirm, methods=["POST"]),
            Route("/metrics", metrics_route(dashboard)),
            Route("/style.css", style),
            Mount("/static", StaticFiles(packages=[("sharecons.dashboard", "static")])),
        ],
        middleware=[
            Middleware(Guard, access=access),
            Middleware(Started, dashboard=dashboard),
        ],
        lifespan=lifespan,
    )
    app.state.dashboard = dashboard
    return app


FIRST_SECONDS: Final = 2.0


class Started:
    """An ASGI middleware that starts the dashboard with its first request.

    The first responses wait for the first collection, so that they are not empty.
    """

    def __init__(self, app: ASGIApp, dashboard: Dashboard) -> None:
        self._app = app
        self._dashboard = dashboard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._dashboard.start()
            with anyio.move_on_after(FIRST_SECONDS):
                await self._dashboard.live.wait_for_change(0)
        await self._app(scope, receive, send)


def metrics_route(dashboard: Dashboard) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint with the metrics of the exporter."""
    registry: CollectorRegistry | None = None

    async def endpoint(request: Request) -> Response:
        nonlocal registry
        registry = registry or make_registry(dashboard.metrics())
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        # In a thread: thousands of series take tenths of a second.
        text = await to_thread.run_sync(encode, registry)
        return Response(text, headers={"Content-Type": media_type})

    return endpoint


async def style(request: Request) -> Response:
    """Return the style of pages, and of the bars that files have as well."""
    return Response(_STYLE, media_type="text/css")


_STATIC: Final = Path(__file__).parent / "static"
_STYLE: Final = STYLE + (_STATIC / "style.css").read_text(encoding="utf-8")
