"""Checks of whether a cluster is ready: sends the requests, and checks the results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sharecons.admin import (
    ClusterDescription,
    ConfigEntry,
    Features,
    Result,
    ShareGroupAdmin,
    Topic,
)
from sharecons.copies.topic_configs import CopyTopic
from sharecons.group_state.gather import gather, outcome_of, read_each
from sharecons.inspection.dead_letters import (
    read_broker_configs,
    read_dead_letter_facts,
)
from sharecons.inspection.diagnosis.checks import Check
from sharecons.inspection.diagnosis.copy_topic_checks import (
    check_copy_topic,
    copy_topics,
    source_topic,
)
from sharecons.inspection.diagnosis.dead_letter_checks import (
    check_dead_letters,
    dead_letter_settings,
)
from sharecons.inspection.diagnosis.internal_topics import (
    OFFSETS_TOPIC,
    STATE_TOPIC,
    InternalTopicFacts,
    check_internal_topic,
)
from sharecons.inspection.diagnosis.preflight import (
    check_configs,
    check_features,
    check_group,
    check_reachable,
    check_rights,
    check_topic,
)

__all__ = ["check_cluster"]

INTERNAL: Final = {each.name: each for each in (STATE_TOPIC, OFFSETS_TOPIC)}
TO_CONSUME: Final = {
    "READ": "to consume it",
    "DESCRIBE": "to find its leaders",
}
TO_WRITE: Final = {"WRITE": "to write copies"}
TO_RETRY: Final = {"READ": "to consume it", **TO_WRITE}
TO_JOIN: Final = {"READ": "to join it", "DESCRIBE": "to look at it"}


async def check_cluster(
    admin: ShareGroupAdmin,
    *,
    topics: Iterable[str] = (),
    groups: Iterable[str] = (),
    retry_topics: Mapping[str, float] = MappingProxyType({}),
    dead_letter: str | None = None,
) -> tuple[Check, ...]:
    """Check whether share groups can be used, with these topics and groups.

    Args:
        topics: that a group reads, or the handlers of a worker.
        retry_topics: of the worker, with their delays in seconds.
        dead_letter: the dead-letter topic of the worker.

    Raises:
        ConnectionFailedError, AuthenticationError: the cluster cannot be reached.
        ConfigurationError: an argument is invalid.
    """
    names, group_ids = tuple(dict.fromkeys(topics)), tuple(dict.fromkeys(groups))
    cluster = await admin.describe_cluster()
    features = await read_each(
        sorted(cluster.brokers), lambda node: admin.describe_features(node_id=node)
    )
    checks = [check_reachable(cluster), *check_features(features)]
    known = await admin.describe_topics(
        *dict.fromkeys((*INTERNAL, *names)), authorized_operations=True
    )
    checks += await _internal_topics(admin, cluster, known)
    for name in names:
        checks += _topic(name, known[name])
    copies = copy_topics(names, retry_topics, dead_letter)
    if copies:
        checks += await _copy_topics(admin, copies, names)
    if group_ids and _has_share_groups(features):
        checks += await _groups(admin, group_ids, features)
    return tuple(checks)


async def _internal_topics(
    admin: ShareGroupAdmin,
    cluster: ClusterDescription,
    known: Mapping[str, Result[Topic]],
) -> list[Check]:
    names = [each.replication_factor for each in INTERNAL.values()]
    topic_configs, broker_configs = await gather(
        admin.describe_topic_configs(*INTERNAL),
        read_broker_configs(admin, cluster.brokers, names),
    )
    return [
        check_internal_topic(
            topic,
            InternalTopicFacts(
                described=known[name],
                topic_configs=outcome_of(topic_configs, name),
                brokers=len(cluster.brokers),
                broker_configs=broker_configs.value,
            ),
        )
        for name, topic in INTERNAL.items()
    ]


def _has_share_groups(features: dict[int, Result[Features]]) -> bool:
    return any(each.ok and each.value.share_version for each in features.values())


def _topic(name: str, described: Result[Topic]) -> Iterator[Check]:
    yield check_topic(name, described)
    if described.ok:
        allowed = described.value.authorized_operations
        yield check_rights(f"topic {name}", allowed, TO_CONSUME)


async def _copy_topics(
    admin: ShareGroupAdmin, copies: Sequence[CopyTopic], sources: Iterable[str]
) -> list[Check]:
    names = tuple(dict.fromkeys((*sources, *(each.name for each in copies))))
    described, configs = await gather(
        admin.describe_topics(*names, authorized_operations=True),
        admin.describe_topic_configs(*names),
    )
    checks: list[Check] = []
    known = [
        source_topic(topic.value, outcome_of(configs, topic.value.name))
        for topic in (outcome_of(described, name) for name in sources)
        if topic.ok
    ]
    for copy in copies:
        topic = outcome_of(described, copy.name)
        config = outcome_of(configs, copy.name)
        checks += check_copy_topic(copy, topic, config, known)
        if topic.ok:
            allowed = topic.value.authorized_operations
            needed = TO_RETRY if copy.is_retry else TO_WRITE
            checks.append(check_rights(f"topic {copy.name}", allowed, needed))
    return checks


async def _groups(
    admin: ShareGroupAdmin,
    group_ids: tuple[str, ...],
    features: dict[int, Result[Features]],
) -> list[Check]:
    described, configs = await gather(
        admin.describe_share_groups(*group_ids, authorized_operations=True),
        admin.describe_group_configs(*group_ids),
    )
    listed = await admin.list_groups(types=())
    checks: list[Check] = []
    for name in group_ids:
        found = listed.groups.get(name)
        group = outcome_of(described, name)
        checks.append(check_group(name, group, found.group_type if found else None))
        config = outcome_of(configs, name)
        checks += check_configs(name, config)
        if config.ok:
            checks += await _dead_letters(admin, name, config.value, features)
        if group.ok:
            allowed = group.value.authorized_operations
            checks.append(check_rights(f"group {name}", allowed, TO_JOIN))
    return checks


async def _dead_letters(
    admin: ShareGroupAdmin,
    group_id: str,
    configs: Mapping[str, ConfigEntry],
    features: dict[int, Result[Features]],
) -> list[Check]:
    settings = dead_letter_settings(configs)
    if settings is None or settings.topic is None:
        return list(check_dead_letters(group_id, settings, None))
    facts = await read_dead_letter_facts(
        admin,
        settings.topic,
        brokers=await read_broker_configs(admin, features),
        features={node: each.value for node, each in features.items() if each.ok},
    )
    return list(check_dead_letters(group_id, settings, facts))
