"""Templates, addresses and pages of lists. Texts from Kafka are escaped, by jinja2."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from sharecons.dashboard import texts
from sharecons.dashboard.live import Live
from sharecons.errors import ConfigurationError
from sharecons.inspection.bar_svg import PATTERNS

__all__ = ["PageNumber", "Renderer", "number_of", "page_of"]

T = TypeVar("T")


class PageNumber(NamedTuple):
    """The page of a list that is shown, from 1, and how many there are."""

    number: int = 1
    pages: int = 1


class Renderer:
    """Renders templates with what each of them has: the state, addresses, the user."""

    def __init__(self, live: Live, *, allows_changes: bool) -> None:
        self._live = live
        self._allows_changes = allows_changes
        self._environment = Environment(
            loader=PackageLoader("sharecons.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(texts.FILTERS)

    def response(
        self, request: Request, name: str, status: int = 200, **values: Any
    ) -> HTMLResponse:
        root = request.scope.get("root_path", "")

        def url(path: str, **query: object) -> str:
            return f"{root}{path}{'?' if query else ''}{urlencode(query)}"

        text = self._environment.get_template(name).render(
            live=self._live,
            patterns=Markup(PATTERNS),
            url=url,
            query=dict(request.query_params),
            can_change=self._allows_changes and request.scope["user"].role == "change",
            **values,
        )
        return HTMLResponse(text, status)


def page_of(
    request: Request, found: Sequence[T], size: int
) -> tuple[PageNumber, Sequence[T]]:
    """Return the page that a request names, or the nearest one, and what it has."""
    pages = max(1, -(-len(found) // size))
    number = min(pages, _wanted_page(request))
    return PageNumber(number, pages), found[(number - 1) * size : number * size]


def number_of(request: Request, name: str) -> int | None:
    """Return a whole number of the query; None without one.

    Raises:
        ConfigurationError: it is something else.
    """
    text = request.query_params.get(name, "")
    return texts.parse_number(name, text) if text.strip() else None


def _wanted_page(request: Request) -> int:
    with suppress(ConfigurationError):
        return number_of(request, "page") or 1
    return 1
