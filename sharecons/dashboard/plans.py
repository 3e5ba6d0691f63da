"""Plans of changes, with the texts of the commands' --dry-run.

A plan is made from the fields of a form, shown, and then run as it was shown: its
values are looked up once, and not again when it runs.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.admin.log_bounds import log_bounds
from sharecons.dashboard.texts import parse_number
from sharecons.dead_letters import (
    DeadLetterRecord,
    DeadLetters,
    RedriveSummary,
    parse_filter,
)
from sharecons.dead_letters.filters import split_filters
from sharecons.dead_letters.plan import Decision, Write
from sharecons.errors import ConfigurationError

__all__ = ["PLANS", "Fields", "Plan", "Progress", "Results"]

Fields: TypeAlias = Mapping[str, str]

Progress: TypeAlias = Callable[[str], None]
"""Replaces the text that says how far a change is."""

Results: TypeAlias = Sequence[str]
"""A line for each item."""

MAX_SHOWN: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A change that was not made yet.

    Attributes:
        what: in a line, for the page and the log of changes.
        items: a line for each item, or for the first ones.
        count: of all items; nothing is changed if it is 0.
        run: makes the change, and returns the results. Raises what it cannot do.
    """

    what: str
    items: Sequence[str]
    count: int
    run: Callable[[Progress], Awaitable[Results]]


async def plan_redrive(admin: ShareGroupAdmin, fields: Fields) -> Plan:
    """Redrive dead letters of `topic`: of `position`, or `all` that pass `filter`."""
    topic, to = _needed(fields, "topic"), fields.get("to", "").strip() or None
    chosen = parse_filter(*_chosen(fields))
    limit = _optional_number(fields, "limit")
    letters = DeadLetters.from_admin(admin, topic)
    items: list[str] = []
    targets: Counter[str] = Counter()

    def note(letter: DeadLetterRecord, decision: Decision) -> None:
        if isinstance(decision, Write):
            targets[decision.target.topic] += 1
            if len(items) < MAX_SHOWN:
                items.append(f"{letter.position} to {decision.target.topic}")

    summary = await letters.plan_redrive(note, to=to, filter=chosen, limit=limit)
    skipped = [f"{count:,} not: {why}" for why, count in summary.skipped.items()]

    async def run(progress: Progress) -> Results:
        def show(now: RedriveSummary) -> None:
            progress(f"{now.redriven:,} redriven")

        done = await letters.redrive(
            to=to, filter=chosen, limit=limit, on_progress=show
        )
        return (
            f"{done.redriven:,} dead letters redriven",
            *(f"{count:,} not: {why}" for why, count in done.skipped.items()),
            *done.errors,
        )

    count = targets.total()
    where = ", ".join(f"{number:,} to {name}" for name, number in targets.items())
    what = f"redrive {count:,} dead letters of {topic}" + (
        f": {where}" if where else ""
    )
    return Plan(
        what=what, items=(*items, *skipped, *summary.errors), count=count, run=run
    )


async def plan_deletion(admin: ShareGroupAdmin, fields: Fields) -> Plan:
    """Delete the dead letters of a `partition` of `topic` before an `offset`."""
    topic = _needed(fields, "topic")
    before = {_number(fields, "partition"): _number(fields, "offset")}
    unredriven = fields.get("not_redriven") == "yes"
    letters = DeadLetters.from_admin(admin, topic)
    planned = await letters.plan_delete(before)
    items = [
        f"{each.topic}-{each.partition} before {each.before}: {each.letters:,} dead "
        f"letters, {each.not_redriven:,} of them not redriven"
        for each in planned.values()
    ]

    async def run(progress: Progress) -> Results:
        deleted = await letters.delete(before, not_redriven=unredriven)
        return (
            *(
                f"{topic}-{key}: deleted before {each.before}"
                for key, each in deleted.found.items()
            ),
            *(f"{topic}-{key}: {error}" for key, error in deleted.errors.items()),
        )

    count = sum(each.letters for each in planned.values())
    return Plan(
        what=f"delete {count:,} dead letters of {topic}",
        items=items,
        count=count,
        run=run,
    )


async def plan_offsets(admin: ShareGroupAdmin, fields: Fields) -> Plan:
    """Set the start offsets of `group` in `topic`: to an offset, earliest or latest."""
    group, topic = _needed(fields, "group"), _needed(fields, "topic")
    to = _needed(fields, "to")
    partition = _optional_number(fields, "partition")
    known = (await admin.describe_topics(topic))[topic].value.partitions
    numbers = sorted(known) if partition is None else [partition]
    keys = [TopicPartition(topic, number) for number in numbers]
    bounds = await log_bounds(admin, keys)
    now = (await admin.list_share_group_offsets(group))[group]
    current = now.value.found if now.ok else {}
    offsets: dict[TopicPartition, int] = {}
    for key in keys:
        low, high = bounds[key].value
        wanted = {"earliest": low, "latest": high}.get(to)
        if wanted is None:
            wanted = min(high, max(low, _number(fields, "to")))
        offsets[key] = wanted

    def line(key: TopicPartition) -> str:
        known_now = current.get(key)
        start = "none" if known_now is None else known_now.start_offset
        return f"{key.topic}-{key.partition}: {start} to {offsets[key]}"

    async def run(progress: Progress) -> Results:
        done = await admin.alter_share_group_offsets(group, offsets)
        return (
            *(f"{topic}-{key.partition}: {each}" for key, each in done.found.items()),
            *(
                f"{topic}-{key.partition}: {error}"
                for key, error in done.errors.items()
            ),
        )

    return Plan(
        what=f"set the start offsets of group {group} in {topic}",
        items=[line(key) for key in keys],
        count=len(keys),
        run=run,
    )


async def plan_config(admin: ShareGroupAdmin, fields: Fields) -> Plan:
    """Set the config `name` of `group` to `value`; empty resets it to its default."""
    group, name = _needed(fields, "group"), _needed(fields, "name")
    value = fields.get("value", "").strip() or None
    changes = {name: value}
    (await admin.alter_group_configs(group, changes, validate_only=True)).value  # noqa: B018
    before = (await admin.describe_group_configs(group))[group].value.get(name)

    async def run(progress: Progress) -> Results:
        (await admin.alter_group_configs(group, changes)).value  # noqa: B018
        return (f"{name} of {group} is {'its default' if value is None else value}",)

    old = "unknown" if before is None else before.value
    new = "its default" if value is None else value
    return Plan(
        what=f"set {name} of group {group}", items=[f"{old} to {new}"], count=1, run=run
    )


async def plan_group_deletion(admin: ShareGroupAdmin, fields: Fields) -> Plan:
    """Delete `group` with its offsets; it must have no members."""
    group = _needed(fields, "group")
    found = await admin.describe_group(group)
    if found.members:
        raise ConfigurationError(
            f"group {group!r} has {len(found.members)} members: stop them first"
        )

    async def run(progress: Progress) -> Results:
        (await admin.delete_share_groups(group)).check()
        return (f"group {group} is deleted",)

    what = f"delete group {group} with its offsets"
    return Plan(what=what, items=[f"state: {found.state}"], count=1, run=run)


PLANS: Final[Mapping[str, Callable[[ShareGroupAdmin, Fields], Awaitable[Plan]]]] = {
    "redrive": plan_redrive,
    "delete-letters": plan_deletion,
    "offsets": plan_offsets,
    "config": plan_config,
    "delete-group": plan_group_deletion,
}


def _chosen(fields: Fields) -> list[str]:
    if fields.get("all"):
        return split_filters(fields.get("filter", ""))
    if not (positions := fields.get("position", "").split()):
        raise ConfigurationError("no dead letters are selected")
    return [f"position={each}" for each in positions]


def _needed(fields: Fields, name: str) -> str:
    value = fields.get(name, "").strip()
    if not value:
        raise ConfigurationError(f"{name} is missing")
    return value


def _number(fields: Fields, name: str) -> int:
    return parse_number(name, _needed(fields, name))


def _optional_number(fields: Fields, name: str) -> int | None:
    return _number(fields, name) if fields.get(name, "").strip() else None
