"""The settings of groups: all of Kafka 4.3 (KIP-932), and the dead letters of 4.4.

Values are bounded twice: by the setting itself, and by two settings of the brokers.
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
    """Return a numeric setting with a default and two bounds in the brokers."""
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


SESSION: Final = "Time without heartbeats after which a member is removed."
HEARTBEAT: Final = "Time between two heartbeats of a member."
INTERVAL: Final = "Minimum time between two assignments of the group."

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
        doc="The topic that dead letters are written to; none if empty.",
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
        "Number of deliveries after which a record is archived.",
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
        "Maximum number of records in flight in a partition.",
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
