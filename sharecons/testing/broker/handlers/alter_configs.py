"""AlterConfigs 0 to 2: replace all settings of a resource.

Settings that are not named return to their defaults. Kafka 4 has this API and
IncrementalAlterConfigs, which replaced it in Kafka 2.3 (KIP-339).
"""

from collections.abc import Mapping

from sharecons.testing.broker.alter_configs import alter
from sharecons.testing.broker.codec import Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.settings.changes import Change, Operation

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    return alter(request, context, _changes)


def _changes(resource: Request, own: Mapping[str, str]) -> list[Change]:
    named = [Change(each.name, Operation.SET, each.value) for each in resource.configs]
    rest = own.keys() - {change.name for change in named}
    return [*named, *(Change(name, Operation.DELETE) for name in sorted(rest))]
