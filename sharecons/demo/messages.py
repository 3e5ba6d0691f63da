"""The texts of events and of the summary, for both views."""

from collections.abc import Sequence
from typing import assert_never

from sharecons.demo.job_tracker import (
    Event,
    EventKind,
    JobTracker,
    RedeliveryReason,
    Totals,
)

__all__ = ["closing_lines", "describe_event", "summary_rows"]

_REASONS = {
    RedeliveryReason.RELEASED: "{consumer} released it",
    RedeliveryReason.KILLED: "{consumer} was killed",
    RedeliveryReason.PREFETCHED: "{consumer} was killed after prefetching it",
    RedeliveryReason.LOCK_EXPIRED: "the lock of {consumer} expired",
}


def describe_event(event: Event) -> str:
    """Return the text of an event, without the name of its consumer."""
    jobs = _format_jobs(event.jobs)
    match event.kind:
        case EventKind.FAILED:
            return f"failed to process {jobs} and released it"
        case EventKind.REDELIVERED:
            reason = _format_reason(event)
            return f"received {jobs}, delivery {event.delivery_count}{reason}"
        case EventKind.KILLED:
            return f"was killed with {jobs or 'no jobs'} in progress"
        case EventKind.REJECTED:
            return f"rejected {jobs}: failed in {event.delivery_count} deliveries"
        case EventKind.ARCHIVED:
            return f"archived {jobs} after {event.delivery_count} deliveries"
        case EventKind.LOCK_EXPIRED:
            return f"lost {jobs}: the lock expired"
        case _:
            assert_never(event.kind)


def summary_rows(totals: Totals) -> list[tuple[str, int, str]]:
    """Return the rows of the summary: a name, a count, and its parts."""
    parts = [
        f"{totals.accepted} accepted",
        f"{len(totals.rejected)} rejected{_name_jobs(totals.rejected)}",
        *([f"{totals.archived} archived by the broker"] * bool(totals.archived)),
        *([f"{totals.unfinished} unfinished"] * bool(totals.unfinished)),
    ]
    reasons = [
        f"{count} {reason.value}" for reason, count in totals.reasons.items() if count
    ]
    rows = [
        ("produced", totals.produced, _format_sum(parts)),
        (
            "delivered",
            totals.delivered + totals.redelivered,
            _format_sum(
                [
                    f"{totals.delivered} first deliveries",
                    f"{totals.redelivered} redeliveries",
                ]
            ),
        ),
        ("redelivered", totals.redelivered, _format_sum(reasons)),
        ("accepted twice", totals.accepted_twice, ""),
    ]
    if totals.lag is not None:
        rows.append(("lag", totals.lag, "unfinished jobs, as counted by the broker"))
    return rows


def closing_lines(tracker: JobTracker, now: float, *, interrupted: bool) -> list[str]:
    """Return the last lines: whether the final check passed."""
    if interrupted:
        return [f"Interrupted after {now:.1f} s; unfinished jobs were released."]
    discrepancies = tracker.discrepancies()
    if not discrepancies:
        return [f"Check passed: each job was completed exactly once, in {now:.1f} s."]
    return ["Check failed:", *(f"  {complaint}" for complaint in discrepancies)]


def _format_sum(parts: Sequence[str]) -> str:
    return "= " + " + ".join(parts) if parts else ""


def _name_jobs(numbers: tuple[int, ...]) -> str:
    return f" ({_format_jobs(numbers)})" if 0 < len(numbers) <= 3 else ""


def _format_reason(event: Event) -> str:
    if event.reason is None:
        return ""
    return f": {_REASONS[event.reason].format(consumer=event.previous_consumer)}"


def _format_jobs(numbers: tuple[int, ...]) -> str:
    if not numbers:
        return ""
    *others, last = map(str, numbers)
    if not others:
        return f"job {last}"
    return f"jobs {', '.join(others)} and {last}"
