"""The default source of a worker: a member of its share group."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from sharecons.config.validation import check_topics
from sharecons.member.group_setup import OffsetReset
from sharecons.member.group_start import CheckBeforeJoining
from sharecons.member.record_source import Acknowledged, RecordSource
from sharecons.member.settings import MemberSettings
from sharecons.member.share_source import ShareSource
from sharecons.member.source_options import SourceOptions
from sharecons.worker.machine.meters import Meters

__all__ = ["new_source", "source_options"]

ADVICE: Final = (
    "raise share.record.lock.duration.ms, and do not block the event loop, in which "
    "the worker renews locks"
)
"""Advice if a handler takes longer than the lock of its record."""


def source_options(
    settings: MemberSettings,
    topics: Iterable[str],
    *,
    check_before_joining: CheckBeforeJoining,
    on_acknowledged: Acknowledged | None,
    on_locks_lost: Callable[[str], bool],
    on_undelivered: Callable[[Sequence[Any]], object],
    meters: Meters | None,
) -> SourceOptions:
    """Return what the source of a worker is made from.

    It sets the group's offset reset to earliest, unless the application or the group
    has a value.
    """
    if settings.auto_offset_reset.is_default:
        earliest = OffsetReset("earliest", is_default=True)
        settings = replace(settings, auto_offset_reset=earliest)
    return SourceOptions(
        settings=settings,
        topics=check_topics(topics),
        owner="worker",
        check_before_joining=check_before_joining,
        on_acknowledged=on_acknowledged,
        on_acknowledge_latency=meters and meters.acknowledgement_latencies.observe,
        advice=ADVICE,
        is_guarded=True,
        on_locks_lost=on_locks_lost,
        on_undelivered=on_undelivered,
    )


def new_source(options: SourceOptions) -> RecordSource:
    """Return a member of the share group."""
    return ShareSource(options)
