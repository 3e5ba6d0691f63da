"""Group configs: read, checked, set, and seen to be applied."""

from collections.abc import Mapping

from sharecons.net.questions import Questions
from sharecons.protocol.admin_values import ConfigEntry
from sharecons.protocol.outcomes import Outcome, Results

__all__ = ["alter_configs", "describe_configs"]


async def describe_configs(
    questions: Questions, group_ids: tuple[str, ...]
) -> Results[str, Mapping[str, ConfigEntry]]:
    raise NotImplementedError


async def alter_configs(
    questions: Questions,
    group_id: str,
    wanted: Mapping[str, str | int | bool | None],
    validate_only: bool,
) -> Outcome[None]:
    raise NotImplementedError
