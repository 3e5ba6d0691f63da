"""Creation of topics and of more partitions; a request is validated before it acts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.placement import check_assignment, place_replicas
from sharecons.testing.broker.topics import Topic, topic_name_error

__all__ = ["NewTopic", "add_partitions", "create_topic", "plan_topic"]

USE_DEFAULT: Final = -1

Replicas = list[list[int]]
"""Node ids for each partition, the preferred leader first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; -1 uses the broker's default."""

    name: str
    partitions: int = USE_DEFAULT
    replication: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """Partitions and their replicas, if the request assigns them."""
    config: Mapping[str, str | None] = field(default_factory=dict)
    """The topic's own settings; null values are rejected."""

    @property
    def config_values(self) -> dict[str, str]:
        return {name: value for name, value in self.config.items() if value is not None}


def create_topic(cluster: Cluster, new_topic: NewTopic) -> Topic:
    """Create a topic.

    Raises:
        RequestError: the request is invalid, or the topic exists.
    """
    replicas = plan_topic(cluster, new_topic)
    return cluster.add_topic(new_topic.name, replicas, new_topic.config_values)


def plan_topic(cluster: Cluster, new_topic: NewTopic) -> Replicas:
    """Return the replicas of a new topic's partitions.

    Raises:
        RequestError: the request is invalid, or the topic exists.
    """
    _check_name(cluster, new_topic.name)
    _check_config(cluster, new_topic)
    if new_topic.assignments:
        return _manual_replicas(cluster, new_topic)
    if new_topic.replication < USE_DEFAULT or new_topic.replication == 0:
        raise RequestError(
            ErrorCode.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if new_topic.partitions < USE_DEFAULT or new_topic.partitions == 0:
        raise RequestError(
            ErrorCode.invalid_partitions,
            "Number of partitions was set to an invalid non-positive value.",
        )
    return _automatic_replicas(cluster, new_topic)


def add_partitions(
    cluster: Cluster,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None = None,
    *,
    validate_only: bool = False,
) -> None:
    """Add partitions to a topic until it has `count`.

    Raises:
        RequestError: there is no such topic, or the request is invalid.
    """
    topic = cluster.topics.by_name(name)
    if topic is None:
        raise RequestError(ErrorCode.unknown_topic_or_partition)
    _check_count(topic, count)
    added = range(len(topic.partitions), count)
    replication = len(topic.partitions[0].replicas)
    if assignments is None:
        replicas = place_replicas(cluster.nodes, added, replication)
    else:
        replicas = _added_replicas(cluster, added, replication, assignments)
    if not validate_only:
        cluster.add_partitions(topic, replicas)


def _check_name(cluster: Cluster, name: str) -> None:
    if fault := topic_name_error(name):
        raise RequestError(
            ErrorCode.invalid_topic_exception, f"Topic name is invalid: {fault}"
        )
    if cluster.topics.by_name(name):
        raise RequestError(
            ErrorCode.topic_already_exists, f"Topic '{name}' already exists."
        )
    if other := cluster.topics.find_collision(name):
        raise RequestError(
            ErrorCode.invalid_topic_exception,
            f"Topic '{name}' collides with existing topic: {other.name}",
        )


def _check_config(cluster: Cluster, new_topic: NewTopic) -> None:
    if missing := [name for name, value in new_topic.config.items() if value is None]:
        names = ",".join(missing)
        raise RequestError(
            ErrorCode.invalid_config,
            f"Null value not supported for topic configs: {names}",
        )
    cluster.configs.check_topic(new_topic.config_values)


def _manual_replicas(cluster: Cluster, new_topic: NewTopic) -> Replicas:
    """Return the replicas that the request assigns."""
    if new_topic.replication != USE_DEFAULT:
        raise RequestError(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but replication "
            "factor was not set to -1.",
        )
    if new_topic.partitions != USE_DEFAULT:
        raise RequestError(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but numPartitions "
            "was not set to -1.",
        )
    found: dict[int, list[int]] = {}
    replication = None
    for index, replicas in new_topic.assignments:
        if index in found:
            raise RequestError(
                ErrorCode.invalid_replica_assignment,
                f"Found multiple manual partition assignments for partition {index}",
            )
        _check_replicas(cluster, index, replicas, replication)
        found[index] = list(replicas)
        replication = len(replicas)
    if found.keys() != set(range(len(found))):
        raise RequestError(
            ErrorCode.invalid_replica_assignment,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [found[index] for index in range(len(found))]


def _check_replicas(
    cluster: Cluster, index: int, replicas: Sequence[int], replication: int | None
) -> None:
    check_assignment(cluster.nodes, replicas, replication)
    if set(replicas).isdisjoint(cluster.running):
        raise RequestError(
            ErrorCode.invalid_replica_assignment,
            "All brokers specified in the manual partition assignment for "
            f"partition {index} are fenced or in controlled shutdown.",
        )


def _automatic_replicas(cluster: Cluster, new_topic: NewTopic) -> Replicas:
    partitions, replication = new_topic.partitions, new_topic.replication
    if partitions == USE_DEFAULT:
        partitions = int(cluster.configs.broker_value("num.partitions"))
    if replication == USE_DEFAULT:
        replication = int(cluster.configs.broker_value("default.replication.factor"))
    try:
        return place_replicas(cluster.nodes, range(partitions), replication)
    except RequestError as error:
        raise RequestError(
            error.code,
            f"Unable to replicate the partition {replication} time(s): {error.message}",
        ) from None


def _check_count(topic: Topic, count: int) -> None:
    present = len(topic.partitions)
    if count == present:
        raise RequestError(
            ErrorCode.invalid_partitions,
            f"Topic already has {present} partition(s).",
        )
    if count < present:
        raise RequestError(
            ErrorCode.invalid_partitions,
            f"The topic {topic.name} currently has {present} partition(s); "
            f"{count} would not be an increase.",
        )


def _added_replicas(
    cluster: Cluster,
    added: range,
    replication: int,
    assignments: Sequence[Sequence[int]],
) -> Replicas:
    if len(assignments) != len(added):
        raise RequestError(
            ErrorCode.invalid_replica_assignment,
            f"Attempted to add {len(added)} additional partition(s), but only "
            f"{len(assignments)} assignment(s) were specified.",
        )
    for index, replicas in zip(added, assignments, strict=True):
        _check_replicas(cluster, index, replicas, replication)
    return [list(replicas) for replicas in assignments]
