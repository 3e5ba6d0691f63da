"""The source and the target group: their types and whether they have members."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sharecons.admin import ConsumerGroup, Results, ShareGroup, ShareGroupAdmin
from sharecons.errors import BrokerError, ConfigurationError, Error
from sharecons.migration.models import Direction
from sharecons.protocol.admin.broker_errors import broker_error, is_code
from sharecons.protocol.codes import Code, code_name

__all__ = ["GroupPair", "describe_pair"]

SHARE: Final = "share"
CONSUMER: Final = "consumer"
KINDS: Final[Mapping[Direction, tuple[str, str]]] = {
    Direction.TO_SHARE_GROUP: (CONSUMER, SHARE),
    Direction.TO_CONSUMER_GROUP: (SHARE, CONSUMER),
}
"""The types of source and target."""

# Brokers before 4.0 describe an unknown group as "Dead".
UNKNOWN: Final = "Dead"
EMPTY: Final = ("Empty", UNKNOWN)

Group = ShareGroup | ConsumerGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair:
    """Source and target; a target that does not exist will be created."""

    direction: Direction
    source: Group
    target: Group | None

    @property
    def obstacles(self) -> tuple[Error, ...]:
        """Errors for groups with members; brokers reject only such targets."""
        groups = [("move from", self.source)]
        if self.target is not None:
            groups.append(("move to", self.target))
        return tuple(
            _has_members_error(doing, group)
            for doing, group in groups
            if _is_in_use(group)
        )


async def describe_pair(
    admin: ShareGroupAdmin, source: str, target: str, direction: Direction | None
) -> GroupPair:
    """Describe both groups; None means the direction of the source's type.

    Raises:
        ConfigurationError: both are the same group.
        BrokerError: the source does not exist, or a group is of the wrong type.
    """
    if source == target:
        raise ConfigurationError(
            f"group {source!r} cannot move to itself: name a target group of the other "
            "type"
        )
    share, consumer = await _describe(admin, source, target)
    if direction is None:
        direction = _direction_from(source, share, consumer)
    kinds = {SHARE: share, CONSUMER: consumer}
    source_kind, target_kind = KINDS[direction]
    found = kinds[source_kind].get(source)
    if found is None:
        raise _wrong_kind_error(
            "from", source, source_kind, kinds[target_kind].get(source)
        )
    if target in kinds[source_kind]:
        raise _wrong_kind_error("to", target, target_kind, kinds[source_kind][target])
    return GroupPair(
        direction=direction, source=found, target=kinds[target_kind].get(target)
    )


async def _describe(
    admin: ShareGroupAdmin, *ids: str
) -> tuple[Mapping[str, Group], Mapping[str, Group]]:
    share = await admin.describe_share_groups(*ids)
    consumer = await admin.describe_consumer_groups(*ids)
    return _existing(share), _existing(consumer)


def _existing(
    described: Results[str, ShareGroup] | Results[str, ConsumerGroup],
) -> dict[str, Group]:
    for error in described.errors.values():
        if not is_code(error, Code.GROUP_ID_NOT_FOUND):
            raise error
    return {
        key: group for key, group in described.found.items() if group.state != UNKNOWN
    }


def _direction_from(
    source: str, share: Mapping[str, Group], consumer: Mapping[str, Group]
) -> Direction:
    if source in share:
        return Direction.TO_CONSUMER_GROUP
    if source in consumer:
        return Direction.TO_SHARE_GROUP
    raise _not_found_error(f"cannot move from {source!r}: there is no such group")


def _wrong_kind_error(
    way: str, group_id: str, wanted: str, other: Group | None
) -> Error:
    what = f"cannot move {way} {wanted} group {group_id!r}"
    if other is None:
        return _not_found_error(f"{what}: there is no such group")
    kind = SHARE if isinstance(other, ShareGroup) else CONSUMER
    return _not_found_error(f"{what}: it is a {kind} group")


def _not_found_error(text: str) -> BrokerError:
    # The code that brokers use for an unknown group and for a wrong type.
    code = Code.GROUP_ID_NOT_FOUND
    return BrokerError(text, code=code, name=code_name(code))


def _is_in_use(group: Group) -> bool:
    return bool(group.members or group.state not in EMPTY)


def _has_members_error(doing: str, group: Group) -> Error:
    many = f"{len(group.members)} members, {group.state}"
    return broker_error(doing, f"group {group.group_id!r}", Code.NON_EMPTY_GROUP, many)
