"""A picture of a share group as an HTML page or an SVG, without external files."""

import html
import io
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from sharecons.escaping import escape
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.picture import GroupPicture

__all__ = ["html_page", "svg_picture"]

WIDTH: Final = 150
"""Characters of a line."""

LIGHT: Final = TerminalTheme(
    (255, 255, 255),
    (31, 35, 40),
    [
        (31, 35, 40),
        (180, 35, 24),
        (26, 127, 55),
        (154, 103, 0),
        (9, 105, 218),
        (146, 40, 146),
        (14, 116, 128),
        (87, 96, 106),
    ],
)
DARK: Final = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        (110, 118, 129),
        (255, 123, 114),
        (86, 211, 100),
        (227, 179, 65),
        (88, 166, 255),
        (240, 136, 240),
        (86, 212, 221),
        (230, 237, 243),
    ],
)
"""Colours with a contrast of at least 4.5 on their background."""

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 2rem; }}
pre {{ font: 13px/1.35 Menlo, "DejaVu Sans Mono", Consolas, monospace; }}
{light}
@media (prefers-color-scheme: dark) {{
{dark}
}}
</style></head>
<body><pre>{code}</pre></body></html>
"""

_STYLES: Final = """\
{stylesheet}
body {{ color: {foreground}; background: {background}; }}"""

# Rich's own format has a window around the text, and fonts from the network.
_SVG: Final = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{width}} {{height}}">
<style>
.{{unique_id}}-matrix {{{{ font: {{char_height}}px monospace; }}}}
{{styles}}
</style>
<defs>
<clipPath id="{{unique_id}}-clip-terminal">
<rect width="{{terminal_width}}" height="{{terminal_height}}"/>
</clipPath>
{{lines}}
</defs>
<rect width="{{width}}" height="{{height}}" fill="{LIGHT.background_color.hex}"/>
<g transform="translate({{terminal_x}}, 24)"
 clip-path="url(#{{unique_id}}-clip-terminal)">
{{backgrounds}}
<g class="{{unique_id}}-matrix">
{{matrix}}
</g>
</g>
</svg>
"""


def html_page(group: GroupInspection, *, offsets: bool = False) -> str:
    """Return a page that follows the reader's choice of light or dark."""
    console = _printed(group, offsets)
    light, dark = (
        console.export_html(theme=theme, clear=False, code_format=_STYLES)
        for theme in (LIGHT, DARK)
    )
    code = console.export_html(code_format="{code}")
    title = html.escape(_title(group))
    return _PAGE.format(title=title, light=light, dark=dark, code=code)


def svg_picture(group: GroupInspection, *, offsets: bool = False) -> str:
    """Return an SVG with a background of its own."""
    svg = _printed(group, offsets).export_svg(
        theme=LIGHT, code_format=_SVG, unique_id="picture"
    )
    title = f"<title>{html.escape(_title(group))}</title>"
    return svg.replace("<style>", f"{title}\n<style>", 1)


def _printed(group: GroupInspection, offsets: bool) -> Console:
    """Return a console that has recorded the picture."""
    at = datetime.fromtimestamp(group.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC.")
    console = Console(
        file=io.StringIO(),
        width=WIDTH,
        record=True,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        highlight=False,
        no_color=False,
    )
    console.print(GroupPicture(group=group, title=at, offsets=offsets))
    return console


def _title(group: GroupInspection) -> str:
    return f"Share group {escape(group.group.group_id)}"
