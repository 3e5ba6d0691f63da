"""The pages of the cluster's checks, made when it is opened, and of workers."""

from starlette.requests import Request
from starlette.responses import HTMLResponse

from sharecons.admin import ShareGroupAdmin
from sharecons.dashboard.rendering import Renderer
from sharecons.dashboard.workers import Workers
from sharecons.errors import Error
from sharecons.escaping import escape
from sharecons.inspection.diagnosis.checks import Check
from sharecons.inspection.preflight import check_cluster

__all__ = ["ClusterPages"]


class ClusterPages:
    """The checks of `sharecons preflight`, and the health ports of workers."""

    def __init__(
        self, admin: ShareGroupAdmin, workers: Workers, renderer: Renderer
    ) -> None:
        self._admin = admin
        self._workers = workers
        self._renderer = renderer

    async def workers(self, request: Request) -> HTMLResponse:
        return self._renderer.response(
            request, "workers.html", workers=await self._workers.read()
        )

    async def preflight(self, request: Request) -> HTMLResponse:
        groups = request.query_params.getlist("group")
        topics = request.query_params.getlist("topic")
        checks: list[Check] = []
        problem = ""
        try:
            found = await check_cluster(self._admin, topics=topics, groups=groups)
            checks = list(found)
        except Error as error:
            problem = escape(str(error))
        return self._renderer.response(
            request, "preflight.html", checks=checks, problem=problem
        )
