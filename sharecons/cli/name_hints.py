"""Lines about errors; for an unknown group or topic, with a similar name."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.codes import Code
from sharecons.similar_names import did_you_mean

__all__ = ["SIMILAR", "lines_about_groups", "lines_about_topics"]

SIMILAR: Final = 0.75
"""Similarity of the names of groups and topics: many differ in one word only."""

_UNKNOWN_GROUP: Final = (Code.GROUP_ID_NOT_FOUND,)
_UNKNOWN_TOPIC: Final = (Code.UNKNOWN_TOPIC_OR_PARTITION,)


async def lines_about_groups(
    admin: ShareGroupAdmin, errors: Mapping[str, Error]
) -> list[str]:
    """Return a line for each error of a group."""
    return await _with_hints(errors, _UNKNOWN_GROUP, lambda: _group_types(admin))


async def lines_about_topics(
    admin: ShareGroupAdmin, errors: Mapping[str, Error]
) -> list[str]:
    """Return a line for each error of a topic."""
    return await _with_hints(errors, _UNKNOWN_TOPIC, lambda: _topic_names(admin))


async def _with_hints(
    errors: Mapping[str, Error],
    codes: Collection[int],
    known: Callable[[], Awaitable[Mapping[str, str]]],
) -> list[str]:
    """Return a line for each error; for an unknown name, with a similar one."""
    missing = {name for name, error in errors.items() if is_code(error, *codes)}
    kinds: Mapping[str, str] = {}
    if missing:
        with suppress(Error):
            kinds = await known()
    return [
        f"{error}{_hint(name, kinds)}" if name in missing else str(error)
        for name, error in errors.items()
    ]


async def _group_types(admin: ShareGroupAdmin) -> Mapping[str, str]:
    listed = (await admin.list_groups(types=())).groups
    return {name: group.group_type for name, group in listed.items()}


async def _topic_names(admin: ShareGroupAdmin) -> Mapping[str, str]:
    return {
        name: "topic" for name, topic in (await admin.describe_topics()).found.items()
    }


def _hint(name: str, kinds: Mapping[str, str]) -> str:
    if name in kinds:
        kind = kinds[name]
        return "" if kind in ("share", "topic") else f"; it is a {kind} group"
    return did_you_mean(name, kinds, cutoff=SIMILAR)
