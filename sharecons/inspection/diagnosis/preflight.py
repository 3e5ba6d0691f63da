"""Checks whether a cluster is ready for share groups.

Rule 1: only this module decides between OK, warning and failure, with advice.
Rule 2: no I/O; if something could not be read, its error is passed in.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sharecons.config.validation import whole_number
from sharecons.errors import AuthorizationError
from sharecons.inspection.diagnosis.checks import Check, fail, ok, warn
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.admin.models import (
    ClusterDescription,
    ConfigEntry,
    Features,
    ShareGroup,
    Topic,
)
from sharecons.protocol.admin.results import Result
from sharecons.protocol.codes import Code

__all__ = [
    "check_configs",
    "check_features",
    "check_group",
    "check_reachable",
    "check_rights",
    "check_topic",
]

SHARE_FETCH: Final = 78
RECORD_LIMITS: Final = 2
"""The version of ShareFetch since Kafka 4.2."""


def check_reachable(cluster: ClusterDescription) -> Check:
    brokers = (
        "1 broker" if len(cluster.brokers) == 1 else f"{len(cluster.brokers)} brokers"
    )
    return ok("cluster", f"{brokers}, cluster id {cluster.cluster_id}")


def check_features(brokers: Mapping[int, Result[Features]]) -> Iterator[Check]:
    """Check the API versions of all brokers, and that share groups are enabled."""
    features = {node: each.value for node, each in brokers.items() if each.ok}
    for node, one in brokers.items():
        if one.error is not None:
            yield fail("version", f"broker {node}: {one.error}", "check that broker")
    without = [node for node, each in features.items() if SHARE_FETCH not in each.apis]
    older = [
        node
        for node, each in features.items()
        if node not in without and each.apis[SHARE_FETCH].highest < RECORD_LIMITS
    ]
    if features:
        yield _version(without, older, len(features))
        yield _feature(max(features.values(), key=lambda each: each.share_version))


def _version(without: list[int], older: list[int], count: int) -> Check:
    if without:
        return fail(
            "version",
            f"{_brokers(without, count)} without share groups: Kafka before 4.1, or "
            "4.1 with the feature off",
            "upgrade to Kafka 4.2 or newer",
        )
    if older:
        return warn(
            "version",
            f"{_brokers(older, count)} of Kafka 4.1, where share groups are a preview",
            "upgrade to 4.2 for record limits, renewals and an exact lag",
        )
    return ok("version", "Kafka 4.2 or newer on every broker")


def _brokers(some: list[int], count: int) -> str:
    if len(some) == count:
        return "every broker is" if count > 1 else "the broker is"
    names = ", ".join(str(node) for node in some)
    return f"of {count} brokers {names} {'is' if len(some) == 1 else 'are'}"


def _feature(features: Features) -> Check:
    if features.share_version > 0:
        return ok("share.version", f"finalized at {features.share_version}")
    if "share.version" not in features.supported:
        return fail(
            "share.version",
            "the brokers do not have this feature",
            "upgrade to Kafka 4.2 or newer",
        )
    return fail(
        "share.version",
        "the feature is supported, but disabled",
        "kafka-features.sh --bootstrap-server … upgrade --feature share.version=1",
    )


def check_topic(name: str, described: Result[Topic]) -> Check:
    """Check a topic that the group will consume."""
    what = f"topic {name}"
    if described.error is not None:
        advice = f"run sharecons create-topics {name}, or correct its name or its ACLs"
        return fail(what, str(described.error), advice)
    topic = described.value
    count = len(topic.partitions)
    leaderless = [n for n, each in topic.partitions.items() if each.leader is None]
    if leaderless:
        numbers = ", ".join(str(number) for number in leaderless[:5])
        return fail(
            what,
            f"no leader for partition {numbers}{' …' if len(leaderless) > 5 else ''}",
            "check the brokers that have its replicas",
        )
    return ok(what, "1 partition" if count == 1 else f"{count} partitions")


def check_group(name: str, described: Result[ShareGroup], kind: str | None) -> Check:
    """Check a group id; `kind` is the type of the listed group with this id, if any."""
    what = f"group {name}"
    if described.ok:
        members = len(described.value.members)
        count = "1 member" if members == 1 else f"{members} members"
        return ok(what, f"a share group, {described.value.state}, {count}")
    if kind is not None and kind != "share":
        return fail(
            what,
            f"there is a {kind} group with this id",
            "use another group id, or delete that group",
        )
    if kind is None and is_code(described.error, Code.GROUP_ID_NOT_FOUND):
        return ok(what, "does not exist yet; its first consumer creates it")
    if isinstance(described.error, AuthorizationError):
        return fail(what, str(described.error), "allow READ on it, to join it")
    return fail(what, str(described.error), "check its coordinator")


def check_configs(
    name: str, described: Result[Mapping[str, ConfigEntry]]
) -> Iterator[Check]:
    """Check the configs of a group, including unsuitable defaults."""
    what = f"configs of {name}"
    if described.error is not None:
        advice = "DESCRIBE_CONFIGS on the group shows them"
        yield warn(what, str(described.error), advice)
        return
    values = {key: entry.value for key, entry in described.value.items()}
    before = 0
    for check in _config_warnings(what, values):
        before += 1
        yield check
    limit = values.get("share.delivery.count.limit")
    lock = _seconds(values.get("share.record.lock.duration.ms"))
    if not before:
        yield ok(what, f"{limit} deliveries, locks of {lock}")


def _config_warnings(what: str, values: Mapping[str, str | None]) -> Iterator[Check]:
    if values.get("share.auto.offset.reset") == "latest":
        yield warn(
            what,
            "share.auto.offset.reset is latest: records written before the group "
            "starts are skipped",
            "set it to earliest, unless this is intended",
        )
    limit = whole_number(values.get("share.delivery.count.limit"))
    if limit is not None and limit < 3:
        yield warn(
            what,
            f"share.delivery.count.limit is {limit}: a record is archived after "
            f"{limit} deliveries, even if consumers were just restarted",
            "5 is Kafka's default",
        )
    lock = whole_number(values.get("share.record.lock.duration.ms"))
    if lock is not None and lock < 5000:
        yield warn(
            what,
            f"share.record.lock.duration.ms is {lock}: a record that takes longer is "
            "delivered to another consumer meanwhile",
            "30000 is Kafka's default",
        )


def _seconds(text: str | None) -> str:
    milliseconds = whole_number(text)
    return "unknown length" if milliseconds is None else f"{milliseconds / 1000:g} s"


def check_rights(
    what: str, allowed: frozenset[str] | None, needed: Mapping[str, str]
) -> Check:
    """Check the rights of this principal; `needed` has the purpose of each right."""
    name = f"rights to {what}"
    if allowed is None:
        return warn(name, "the brokers do not return them", "try to use it")
    missing = [right for right in needed if right not in allowed]
    if not missing:
        return ok(name, ", ".join(needed))
    return fail(
        name,
        f"no {', no '.join(missing)}",
        "; ".join(f"{right}: {needed[right]}" for right in missing),
    )
