"""The group of the audits: whether it is settled, and random events that disturb it."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio

from sharecons.testing import EmbeddedBroker

__all__ = [
    "ARCHIVE",
    "GROUP",
    "OddTopic",
    "change_config",
    "correct_topic",
    "create_archive",
    "inject_fault",
    "is_settled",
    "spoil_topic",
    "start_brokers",
    "start_config",
    "unsettled",
]

GROUP: Final = "billing"
ARCHIVE: Final = "dlq.archived"
"""The topic in which the broker notes each record that it archives (KIP-1191)."""

CONFIGS: Final[dict[str, Sequence[object]]] = {
    "share.record.lock.duration.ms": (1000, 3000, 15000, 30000),
    "share.delivery.count.limit": (2, 3, 5, 10),
    "share.renew.acknowledge.enable": ("true", "false"),
    "share.partition.max.record.locks": (100, 500, 2000, 4000),
}

CODES: Final = {
    "ShareFetch": ("UNKNOWN_SERVER_ERROR", "SHARE_SESSION_NOT_FOUND"),
    "ShareAcknowledge": ("UNKNOWN_SERVER_ERROR", "SHARE_SESSION_NOT_FOUND"),
    "Produce": (
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_ENOUGH_REPLICAS",
        "REQUEST_TIMED_OUT",
        "LEADER_NOT_AVAILABLE",
    ),
    "ShareGroupHeartbeat": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
}
"""Errors after which a client tries again, by the API that responds with them."""

LOST: Final = 30.0
"""The longest request timeout, in seconds, after which a response is lost."""


ODD: Final = (
    ("cleanup.policy", "compact"),
    ("retention.ms", "1000"),
    ("max.message.bytes", "100"),
)
"""Settings with which a topic takes no copies of some records, or loses them."""


@dataclass
class OddTopic:
    """A copy topic with an odd setting, from one time of the event loop to another."""

    topic: str
    config: str
    value: str
    since: float
    until: float = math.inf

    @property
    def text(self) -> str:
        """A part of the error with which a worker does not start."""
        return f"topic {self.topic!r} has {self.config}={self.value}, "

    def overlaps(self, begin: float, end: float) -> bool:
        return begin <= self.until and self.since <= end


def spoil_topic(
    broker: EmbeddedBroker, chance: random.Random, topics: Sequence[str]
) -> OddTopic:
    """Change one of the topics to an odd setting, and return it."""
    config, value = chance.choice(ODD)
    odd = OddTopic(chance.choice(topics), config, value, anyio.current_time())
    _config_of(broker, odd)[config] = value
    return odd


def correct_topic(broker: EmbeddedBroker, odd: OddTopic) -> None:
    """Remove an odd setting."""
    _config_of(broker, odd).pop(odd.config)
    odd.until = anyio.current_time()


def _config_of(broker: EmbeddedBroker, odd: OddTopic) -> dict[str, str]:
    topic = broker.cluster.topics.by_name(odd.topic)
    assert topic is not None
    return topic.config


def create_archive(broker: EmbeddedBroker) -> None:
    """Create the topic ARCHIVE."""
    config = {"errors.deadletterqueue.group.enable": "true"}
    broker.create_topic(ARCHIVE, 1, config=config)


def is_settled(broker: EmbeddedBroker, topics: Mapping[str, int]) -> bool:
    """Return whether all records of the topics are settled.

    Args:
        topics: the number of partitions of each topic.
    """
    try:
        group = broker.group(GROUP)
    except LookupError:
        return False
    found = {(each.topic, each.partition): each for each in group.partitions}
    return all(
        (each := found.get((topic, number))) is not None
        and each.start_offset == each.end_offset
        for topic, partitions in topics.items()
        for number in range(partitions)
    )


def unsettled(broker: EmbeddedBroker) -> list[object]:
    """Return what the group has in flight, at the start of each partition."""
    return [
        (each.topic, each.partition, each.end_offset, each.in_flight[:1])
        for each in broker.group(GROUP).partitions
        if each.start_offset != each.end_offset
    ]


def start_brokers(broker: EmbeddedBroker) -> None:
    """Start the brokers that are stopped."""
    for node in set(broker.brokers) - set(broker.running):
        broker.start_broker(node)


def start_config(chance: random.Random) -> dict[str, object]:
    """Return the first config of the group; sessions of killed members end early."""
    return {
        "errors.deadletterqueue.topic.name": ARCHIVE,
        "share.auto.offset.reset": "earliest",
        "share.session.timeout.ms": 6000,
        "share.heartbeat.interval.ms": 1000,
        **{name: chance.choice(values) for name, values in CONFIGS.items()},
    }


def change_config(broker: EmbeddedBroker, chance: random.Random) -> tuple[str, object]:
    """Change one config of the group; return its name and its value."""
    name = chance.choice(list(CONFIGS))
    value = chance.choice(CONFIGS[name])
    broker.set_group_config(GROUP, {name: value})
    return name, value


def inject_fault(
    broker: EmbeddedBroker,
    chance: random.Random,
    on_hit: Callable[[float], object] = lambda seconds: None,
) -> str:
    """Add a fault for the next requests of one API; return what it does.

    Args:
        on_hit: is called when the fault takes a request, with the seconds for which the
            broker holds the request or its response at most.
    """
    api = chance.choice(list(CODES))
    times, after = chance.randint(1, 4), chance.randint(0, 3)
    seconds = chance.choice([0.5, 3.0, 20.0, 60.0])
    skipped, lasts = 0, 0.0

    def takes(request: object, context: object) -> bool:
        nonlocal skipped
        skipped += 1
        if skipped > after:
            on_hit(lasts)
        return skipped > after

    matcher = broker.faults.on(api, times=times, where=takes)
    actions: dict[str, Callable[[], Any]] = {
        "cut before": matcher.cut,
        "cut after": lambda: matcher.cut(after=True),
        "hang up": matcher.hang_up,
        "lose": matcher.lose,
        "stall": lambda: matcher.stall(seconds),
        "delay": lambda: matcher.delay(seconds),
        "refuse": lambda: matcher.refuse(chance.choice(CODES[api])),
    }
    if api.startswith("ShareF") or api.startswith("ShareA"):
        actions["refuse partitions"] = lambda: matcher.refuse_partitions(
            "NOT_LEADER_OR_FOLLOWER"
        )
    what = chance.choice(list(actions))
    lasts = {"stall": seconds, "delay": seconds, "lose": LOST}.get(what, 0.0)
    actions[what]()
    return f"{what} {api}"
