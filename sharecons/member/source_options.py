"""The options from which a member of a share group is constructed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anyio.abc import TaskGroup

from sharecons.member.group_start import CheckBeforeJoining
from sharecons.member.lease_buffer import BufferListener
from sharecons.member.record_source import Acknowledged
from sharecons.member.settings import MemberSettings

__all__ = ["SourceOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """All that a member has from its user; nothing is set afterwards.

    Attributes:
        settings: how it connects, joins its group and fetches.
        topics: the subscription; without topics it joins once `subscribe` is called.
        owner: "consumer" or "worker", for messages.
        start_tasks: starts tasks of the user, which end with the member's.
        check_before_joining: is awaited once the member has connected. Its exceptions
            end the start.
        on_acknowledged: the application's callback for results of acknowledgements.
        on_acknowledge_latency: receives the seconds from each request with
            acknowledgements to its response.
        advice: for errors of processing that takes longer than the lock; None for the
            advice that a consumer's application needs.
        is_guarded: the methods of records raise, except `renew`: the user settles
            records by `acknowledge`. It reports lost locks itself.
        on_locks_lost: is called with the reason when locks of taken records can be
            lost: `Record.held` is then False for these records. It returns whether the
            user logs such records.
        on_changed: is called when records or errors have arrived, and when the member
            has failed or closes: `take` would return or raise immediately.
        on_undelivered: is called with records whose locks have ended before they were
            taken, if some of them were delivered before; None: nothing is called.
        listener: takes the leases from the member's buffer, and is called when the
            buffer changes, in place of `take`, `on_locks_lost` and `on_changed`.
    """

    settings: MemberSettings
    topics: tuple[str, ...] = ()
    owner: str = "consumer"
    start_tasks: Callable[[TaskGroup], None] | None = None
    check_before_joining: CheckBeforeJoining | None = None
    on_acknowledged: Acknowledged | None = None
    on_acknowledge_latency: Callable[[float], None] | None = None
    advice: str | None = None
    is_guarded: bool = False
    on_locks_lost: Callable[[str], bool] = lambda reason: False
    on_changed: Callable[[], None] = lambda: None
    on_undelivered: Callable[[Sequence[Any]], object] | None = None
    listener: BufferListener | None = None
