"""The settings of groups: all of Kafka 4.3 (KIP-932), and the dead letters of 4.4.

Values are bounded twice: by the setting itself, and by two settings of the brokers.
"""

from collections.abc import Mapping
from typing import Final

from sharecons.testing.broker.settings.setting import Kind, Setting

__all__ = ["GROUPS"]

RESET_NAME: Final = "share.auto.offset.reset"
DURATION: Final = (
    r"P(?=[0-9T])([0-9]+D)?"
    r"(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]{1,9})?S)?)?"
)


def _int_setting(
    group_type: str, name: str, default: int, lowest: int, doc: str
) -> Setting:
    """Return a numeric setting with a default and two bounds in the brokers."""
    return Setting(
        name=f"{group_type}.{name}",
        kind=Kind.INT,
        default=str(default),
        min_value=lowest,
        parents=(f"group.{group_type}.{name}",),
        min_setting=f"group.{group_type}.min.{name}",
        max_setting=f"group.{group_type}.max.{name}",
        doc=doc,
    )


SESSION_DOC: Final = "Time without heartbeats after which a member is removed."
HEARTBEAT_DOC: Final = "Time between two heartbeats of a member."
INTERVAL_DOC: Final = "Minimum time between two assignments of the group."

_ALL: Final = (
    _int_setting("consumer", "assignment.interval.ms", 1000, 0, INTERVAL_DOC),
    _int_setting("consumer", "heartbeat.interval.ms", 5000, 1, HEARTBEAT_DOC),
    _int_setting("consumer", "session.timeout.ms", 45000, 1, SESSION_DOC),
    Setting(
        name="errors.deadletterqueue.copy.record.enable",
        kind=Kind.BOOLEAN,
        default="false",
        is_later=True,
        doc="Whether dead letters have the key and the value of their records.",
    ),
    Setting(
        name="errors.deadletterqueue.topic.name",
        kind=Kind.STRING,
        default="",
        is_later=True,
        doc="The topic that dead letters are written to; none if empty.",
    ),
    _int_setting("share", "assignment.interval.ms", 1000, 0, INTERVAL_DOC),
    Setting(
        name=RESET_NAME,
        kind=Kind.STRING,
        default="latest",
        pattern=f"earliest|latest|by_duration:{DURATION}",
        pattern_error=(
            f"Invalid value `{{value}}` for configuration {RESET_NAME}. The value must "
            "be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'."
        ),
        doc="Where the group starts in a partition that it has not read yet.",
    ),
    _int_setting(
        "share",
        "delivery.count.limit",
        5,
        2,
        "Number of deliveries after which a record is archived.",
    ),
    _int_setting("share", "heartbeat.interval.ms", 5000, 1, HEARTBEAT_DOC),
    Setting(
        name="share.isolation.level",
        kind=Kind.STRING,
        default="read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
        doc="Whether records of transactions are delivered only once committed.",
    ),
    _int_setting(
        "share",
        "partition.max.record.locks",
        2000,
        100,
        "Maximum number of records in flight in a partition.",
    ),
    _int_setting(
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
        doc="Whether members can renew their locks.",
    ),
    _int_setting("share", "session.timeout.ms", 45000, 1, SESSION_DOC),
    _int_setting("streams", "assignment.interval.ms", 1000, 0, INTERVAL_DOC),
    _int_setting("streams", "heartbeat.interval.ms", 5000, 1, HEARTBEAT_DOC),
    Setting(
        name="streams.initial.rebalance.delay.ms",
        kind=Kind.INT,
        default="3000",
        min_value=0,
        parents=("group.streams.initial.rebalance.delay.ms",),
        doc="How long the first assignment waits for more members.",
    ),
    Setting(
        name="streams.num.standby.replicas",
        kind=Kind.INT,
        default="0",
        min_value=0,
        parents=("group.streams.num.standby.replicas",),
        max_setting="group.streams.max.standby.replicas",
        doc="How many members keep a copy of each task's state.",
    ),
    _int_setting("streams", "session.timeout.ms", 45000, 1, SESSION_DOC),
)

GROUPS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _ALL}
