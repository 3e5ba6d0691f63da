"""What happened, in English: for the screen and for lines of text."""

from collections.abc import Sequence
from typing import assert_never

from sharecons.demo.job_tracker import Event, Ledger, Sums, What, Why

__all__ = ["account", "closing", "sentence"]

_REASONS = {
    Why.RELEASED: "{whose} released it",
    Why.KILLED: "{whose} was killed with it",
    Why.AHEAD: "{whose} had fetched it ahead",
    Why.EXPIRED: "the lock of {whose} had ended",
}


def sentence(event: Event) -> str:
    """Say what happened, without who did it."""
    jobs = _jobs(event.jobs)
    match event.what:
        case What.FAILED:
            return f"failed at {jobs}, and released it"
        case What.AGAIN:
            return f"has {jobs} now, delivery {event.delivery_count}{_because(event)}"
        case What.KILLED:
            return f"was killed with {jobs or 'nothing'} in hand"
        case What.REJECTED:
            times = event.delivery_count
            return f"rejected {jobs}: nobody could do it in {times} deliveries"
        case What.ARCHIVED:
            return f"{jobs} was archived by the broker, after {event.delivery_count}"
        case What.LATE:
            return f"held {jobs} past the end of its lock"
        case _:
            assert_never(event.what)


def account(sums: Sums) -> list[tuple[str, int, str]]:
    """The closing account: what, how many, and what it is made of."""
    made_of = [
        f"{sums.accepted} accepted",
        f"{len(sums.rejected)} rejected{_which(sums.rejected)}",
        *([f"{sums.archived} archived by the broker"] * bool(sums.archived)),
        *([f"{sums.left} left over"] * bool(sums.left)),
    ]
    reasons = [f"{count} {why.value}" for why, count in sums.reasons.items() if count]
    rows = [
        ("produced", sums.produced, _sum(made_of)),
        (
            "delivered",
            sums.delivered + sums.again,
            _sum([f"{sums.delivered} for the first time", f"{sums.again} again"]),
        ),
        ("again", sums.again, _sum(reasons)),
        ("accepted twice", sums.twice, ""),
    ]
    if sums.lag is not None:
        rows.append(("lag", sums.lag, "open by the broker's own count"))
    return rows


def closing(ledger: Ledger, now: float, *, interrupted: bool) -> list[str]:
    """The last words: it adds up, or what does not."""
    if interrupted:
        return [f"Interrupted after {now:.1f} s; what was open was released."]
    complaints = ledger.complaints()
    if not complaints:
        return [f"It adds up: every job was settled exactly once, in {now:.1f} s."]
    return ["It does not add up:", *(f"  {complaint}" for complaint in complaints)]


def _sum(parts: Sequence[str]) -> str:
    return "= " + " + ".join(parts) if parts else ""


def _which(numbers: tuple[int, ...]) -> str:
    return f" ({_jobs(numbers)})" if 0 < len(numbers) <= 3 else ""


def _because(event: Event) -> str:
    if event.why is None:
        return ""
    return f": {_REASONS[event.why].format(whose=event.whose)}"


def _jobs(numbers: tuple[int, ...]) -> str:
    if not numbers:
        return ""
    *others, last = map(str, numbers)
    if not others:
        return f"job {last}"
    return f"jobs {', '.join(others)} and {last}"
