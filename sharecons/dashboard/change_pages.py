"""The pages of changes: a plan, its confirmation, and the log."""

from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)

from sharecons.dashboard.changes import Changes
from sharecons.dashboard.rendering import Renderer
from sharecons.errors import Error
from sharecons.escaping import escape

__all__ = ["ChangePages"]

MAX_BODY: Final = 64 << 10
MAX_FIELDS: Final = 200


class ChangePages:
    """Each change is shown first; a second request, from that page, confirms it."""

    def __init__(self, changes: Changes, renderer: Renderer) -> None:
        self._changes = changes
        self._renderer = renderer

    async def log(self, request: Request) -> HTMLResponse:
        return self._renderer.response(
            request, "changes.html", changes=self._changes.latest
        )

    async def plan(self, request: Request) -> Response:
        fields = await _fields(request)
        if fields is None:
            return PlainTextResponse("the form is too large\n", 413)
        kind, plan, key, problem = request.path_params["kind"], None, "", ""
        try:
            key, plan = await self._changes.plan(kind, fields, request.scope["user"])
        except Error as error:
            problem = escape(str(error))
        return self._renderer.response(
            request,
            "plan.html",
            200 if plan else 422,
            plan=plan,
            key=key,
            problem=problem,
        )

    async def confirm(self, request: Request) -> Response:
        fields = await _fields(request) or {}
        try:
            self._changes.confirm(fields.get("plan", ""), request.scope["user"])
        except Error as error:
            return self._renderer.response(
                request, "plan.html", 409, plan=None, key="", problem=escape(str(error))
            )
        return RedirectResponse(f"{request.scope.get('root_path', '')}/changes", 303)


async def _fields(request: Request) -> dict[str, str] | None:
    """Return the fields of a form, values of one name as one; None if too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    text = body.decode("utf-8", "replace")
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:  # more fields
        return None
    return {name: " ".join(values) for name, values in found.items()}
