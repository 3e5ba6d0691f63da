"""The dashboard in the browser: `create_app` returns an ASGI application.

`application` has the routes, `guard` the access rules, `live` the content of all
pages: the latest collection of `sharecons.group_state`, with `rows` and `history`.
`charts` draws lines; partitions are drawn by `sharecons.inspection.bar_svg`.
`server` serves it for `sharecons dashboard`. Templates are in `templates`, the style
and the script in `static`.
"""

from sharecons.dashboard.application import create_app

__all__ = ["create_app"]
__dir__ = __all__.copy
