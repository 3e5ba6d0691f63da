"""Checks of whether a cluster is ready: sends the requests, and checks the results."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import anyio

from sharecons.admin import (
    ClusterDescription,
    Features,
    Outcome,
    Results,
    ShareGroupAdmin,
    Topic,
)
from sharecons.errors import Error
from sharecons.inspection.gather import gather
from sharecons.protocol.diagnosis.preflight import (
    Check,
    check_configs,
    check_features,
    check_group,
    check_reachable,
    check_rights,
    check_state_topic,
    check_topic,
)
from sharecons.wire.share_state_records import SHARE_GROUP_STATE

__all__ = ["check_cluster"]

V = TypeVar("V")

TO_CONSUME: Final = {
    "READ": "to consume it",
    "DESCRIBE": "to find its leaders",
}
TO_JOIN: Final = {"READ": "to join it", "DESCRIBE": "to look at it"}


async def check_cluster(
    admin: ShareGroupAdmin, *, topics: Iterable[str] = (), groups: Iterable[str] = ()
) -> tuple[Check, ...]:
    """Check whether share groups can be used, with these topics and groups.

    Raises:
        ConnectionFailedError, AuthenticationError: the cluster cannot be reached.
        ConfigurationError: an argument is invalid.
    """
    names, group_ids = tuple(dict.fromkeys(topics)), tuple(dict.fromkeys(groups))
    cluster = await admin.describe_cluster()
    features = await _features(admin, cluster)
    checks = [check_reachable(cluster), *check_features(features)]
    known = await admin.describe_topics(
        SHARE_GROUP_STATE, *names, authorized_operations=True
    )
    checks.append(check_state_topic(known[SHARE_GROUP_STATE], len(cluster.brokers)))
    for name in names:
        checks += _topic(name, known[name])
    if group_ids and _has_share_groups(features):
        checks += await _groups(admin, group_ids)
    return tuple(checks)


async def _features(
    admin: ShareGroupAdmin, cluster: ClusterDescription
) -> dict[int, Outcome[Features]]:
    features: dict[int, Outcome[Features]] = {}

    async def send(node_id: int) -> None:
        try:
            features[node_id] = Outcome(await admin.describe_features(node_id=node_id))
        except Error as error:
            features[node_id] = Outcome(error=error)

    async with anyio.create_task_group() as tasks:
        for node_id in cluster.brokers:
            tasks.start_soon(send, node_id)
    return dict(sorted(features.items()))


def _has_share_groups(features: dict[int, Outcome[Features]]) -> bool:
    return any(each.ok and each.value.share_version for each in features.values())


def _topic(name: str, described: Outcome[Topic]) -> Iterator[Check]:
    yield check_topic(name, described)
    if described.ok:
        allowed = described.value.authorized_operations
        yield check_rights(f"topic {name}", allowed, TO_CONSUME)


async def _groups(admin: ShareGroupAdmin, group_ids: tuple[str, ...]) -> list[Check]:
    described, configs = await gather(
        admin.describe_share_groups(*group_ids, authorized_operations=True),
        admin.describe_configs(*group_ids),
    )
    listed = await admin.list_groups(types=())
    checks: list[Check] = []
    for name in group_ids:
        found = listed.groups.get(name)
        group = _outcome_of(described, name)
        checks.append(check_group(name, group, found.group_type if found else None))
        checks += check_configs(name, _outcome_of(configs, name))
        if group.ok:
            allowed = group.value.authorized_operations
            checks.append(check_rights(f"group {name}", allowed, TO_JOIN))
    return checks


def _outcome_of(results: Outcome[Results[str, V]], name: str) -> Outcome[V]:
    if results.error is not None:
        return Outcome(error=results.error)
    return results.value[name]
