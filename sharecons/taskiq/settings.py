"""The settings of `ShareGroupBroker`."""

import hashlib
import multiprocessing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self

from sharecons.config.options import option, read_options
from sharecons.config.validation import (
    HOUR,
    check_count,
    check_number,
    check_offset_reset,
    check_string,
)
from sharecons.member.settings import MEMBER_OPTIONS, MemberOptions, MemberSettings

__all__ = ["NO_OPTIONS", "BrokerOptions", "BrokerSettings", "supervised_name"]

DAY: Final = 24 * HOUR

NO_OPTIONS: Final[Mapping[str, str]] = {
    "acquire_mode": "is always 'record_limit', so that no task waits; omit it",
    "member_id": "would be the same in all worker processes, whose ids are kept when "
    "they are started again; omit it",
    "values": "has no effect: taskiq's messages are bytes; omit it",
}
"""Options of a member that this broker does not have, with the reasons."""


class BrokerOptions(MemberOptions, total=False):
    """The options of `ShareGroupBroker`: a member's, and its own."""

    max_lock_time: float
    max_delay: float
    delivery_timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """The options of `ShareGroupBroker` that are its own, or have another default.

    Attributes:
        options: the other ones, for each member.
    """

    auto_offset_reset: str | None = option(
        "earliest",
        lambda _, value: check_offset_reset(value),
        "where a new group begins, as of `ShareConsumer`. With the default, tasks sent "
        "before the first worker run. It is set as the group's config, which needs the "
        "right to alter it. None leaves the group unchanged",
    )
    max_records: int = option(
        1,
        partial(check_count, minimum=1),
        "tasks that a worker process fetches at a time, even if taskiq's receiver can "
        "run fewer. The others wait in this process, and their locks are renewed",
    )
    client_id: str = option(
        "sharecons-taskiq", check_string, "the name in brokers' logs and quotas"
    )
    max_lock_time: float = option(
        DAY,
        partial(check_number, minimum=0.0, maximum=365 * DAY),
        "seconds after its delivery for which a task's lock is renewed. A task that "
        "runs longer is delivered again",
        shown="a day",
    )
    max_delay: float = option(
        900.0,
        partial(check_number, minimum=0.0, maximum=DAY),
        "the longest `delay` label in seconds. A worker holds a delayed task until it "
        "is due",
    )
    delivery_timeout: float = option(
        30.0,
        partial(check_number, minimum=0.001, maximum=DAY),
        "seconds for a task to be written",
    )
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the settings for the options of `ShareGroupBroker`.

        Raises:
            ConfigurationError: an option is invalid or unknown.
        """
        others = MEMBER_OPTIONS.keys() - NO_OPTIONS.keys()
        own, options = read_options(
            "ShareGroupBroker", given, cls, others=others, reasons=NO_OPTIONS
        )
        return cls(**own, options=options)

    def new_member(self, group_id: str, member_id: str | None = None) -> MemberSettings:
        """Return the settings of a new member.

        Args:
            member_id: its name in the group; None for a new one.

        Raises:
            ConfigurationError: an option is invalid.
        """
        return MemberSettings.of(
            "ShareGroupBroker",
            group_id,
            auto_offset_reset=self.auto_offset_reset,
            max_records=self.max_records,
            client_id=self.client_id,
            member_id=member_id,
            acquire_mode="record_limit",
            **self.options,
        )


def supervised_name() -> str | None:
    """Return a name that no other process has, and that its successor has; or None.

    taskiq starts its worker processes with multiprocessing, and starts one that has
    ended again under its name. They inherit a random key, which hosts do not share.
    """
    parent, process = (
        multiprocessing.parent_process(),
        multiprocessing.current_process(),
    )
    if parent is None:
        return None
    key = hashlib.sha256(process.authkey).hexdigest()
    return f"{key}-{parent.pid}-{process.name}"
