"""IncrementalAlterConfigs 0 and 1 (KIP-339): change single settings."""

from collections.abc import Mapping

from sharecons.testing.broker.alter_configs import alter
from sharecons.testing.broker.codec import Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.settings.changes import Change

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    return alter(request, context, _changes)


def _changes(resource: Request, own: Mapping[str, str]) -> list[Change]:
    return [
        Change(each.name, each.config_operation, each.value)
        for each in resource.configs
    ]
