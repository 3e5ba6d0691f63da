"""The settings of a group: all of Kafka 4.3 (KIP-932), and the dead letters of 4.4.

What a group may be set to is bounded twice: by the setting itself, and by two settings
of the brokers.
"""

from collections.abc import Mapping
from typing import Final

from sharecons.testing.broker.settings.setting import Kind, Setting

__all__ = ["GROUPS"]

RESET: Final = "share.auto.offset.reset"
DURATION: Final = (
    r"P(?=[0-9T])([0-9]+D)?"
    r"(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]{1,9})?S)?)?"
)


def _number(group_type: str, name: str, default: int, lowest: int, doc: str) -> Setting:
    """A number that the brokers have by default too, and bound on both sides."""
    return Setting(
        name=f"{group_type}.{name}",
        kind=Kind.INT,
        default=str(default),
        lowest=lowest,
        parents=(f"group.{group_type}.{name}",),
        floor=f"group.{group_type}.min.{name}",
        ceiling=f"group.{group_type}.max.{name}",
        doc=doc,
    )


SESSION: Final = "How long a member may be silent before it is taken for dead."
HEARTBEAT: Final = "How often members are to send heartbeats."
INTERVAL: Final = "How far apart two assignments of the group are at least."

_ALL: Final = (
    _number("consumer", "assignment.interval.ms", 1000, 0, INTERVAL),
    _number("consumer", "heartbeat.interval.ms", 5000, 1, HEARTBEAT),
    _number("consumer", "session.timeout.ms", 45000, 1, SESSION),
    Setting(
        name="errors.deadletterqueue.copy.record.enable",
        kind=Kind.BOOLEAN,
        default="false",
        later=True,
        doc="Whether dead letters have the key and the value of their records.",
    ),
    Setting(
        name="errors.deadletterqueue.topic.name",
        kind=Kind.STRING,
        default="",
        later=True,
        doc="The topic that is told of what the group gives up; if blank, none.",
    ),
    _number("share", "assignment.interval.ms", 1000, 0, INTERVAL),
    Setting(
        name=RESET,
        kind=Kind.STRING,
        default="latest",
        form=f"earliest|latest|by_duration:{DURATION}",
        refusal=(
            f"Invalid value `{{value}}` for configuration {RESET}. The value must be "
            "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        ),
        doc="Where the group starts in a partition that it has not read yet.",
    ),
    _number(
        "share",
        "delivery.count.limit",
        5,
        2,
        "How often a record is delivered before it is given up.",
    ),
    _number("share", "heartbeat.interval.ms", 5000, 1, HEARTBEAT),
    Setting(
        name="share.isolation.level",
        kind=Kind.STRING,
        default="read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
        doc="Whether records of transactions are delivered only once committed.",
    ),
    _number(
        "share",
        "partition.max.record.locks",
        2000,
        100,
        "How far beyond the start offset of a partition records are locked.",
    ),
    _number(
        "share",
        "record.lock.duration.ms",
        30000,
        1000,
        "How long a record stays locked for the member that has acquired it.",
    ),
    Setting(
        name="share.renew.acknowledge.enable",
        kind=Kind.BOOLEAN,
        default="true",
        doc="Whether members may renew their locks.",
    ),
    _number("share", "session.timeout.ms", 45000, 1, SESSION),
    _number("streams", "assignment.interval.ms", 1000, 0, INTERVAL),
    _number("streams", "heartbeat.interval.ms", 5000, 1, HEARTBEAT),
    Setting(
        name="streams.initial.rebalance.delay.ms",
        kind=Kind.INT,
        default="3000",
        lowest=0,
        parents=("group.streams.initial.rebalance.delay.ms",),
        doc="How long the first assignment waits for more members.",
    ),
    Setting(
        name="streams.num.standby.replicas",
        kind=Kind.INT,
        default="0",
        lowest=0,
        parents=("group.streams.num.standby.replicas",),
        ceiling="group.streams.max.standby.replicas",
        doc="How many members keep a copy of each task's state.",
    ),
    _number("streams", "session.timeout.ms", 45000, 1, SESSION),
)

GROUPS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _ALL}
