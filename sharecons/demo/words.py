"""What happened, in English: for the screen and for lines of text."""

from typing import assert_never

from sharecons.demo.ledger import Event, Ledger, Sums, What, Why

__all__ = ["account", "closing", "sentence"]

_REASONS = {
    Why.RELEASED: "{whose} released it",
    Why.KILLED: "{whose} was killed with it",
    Why.AHEAD: "{whose} had fetched it before being killed",
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
            return f"rejected {jobs}: nobody could do it in {_plural(times, 'try')}"
        case What.ARCHIVED:
            return f"{jobs} was archived by the broker, after {event.delivery_count}"
        case What.LATE:
            return f"held {jobs} past the end of its lock"
        case _:
            assert_never(event.what)


def account(sums: Sums) -> list[tuple[str, int, str]]:
    """The closing account: what, how many, and what it is made of."""
    rows = [
        ("produced", sums.produced, ""),
        ("accepted", sums.accepted, ""),
        ("rejected", sums.rejected, "by whoever tried last"),
    ]
    if sums.archived:
        rows.append(("archived", sums.archived, "by the broker, at its delivery limit"))
    if sums.left:
        rows.append(("left over", sums.left, "neither accepted nor rejected"))
    return [*rows, *_deliveries(sums)]


def closing(ledger: Ledger, now: float, *, interrupted: bool) -> list[str]:
    """The last words: it adds up, or what does not."""
    if interrupted:
        return [f"Interrupted after {now:.1f} s; what was open was released."]
    complaints = ledger.complaints()
    if not complaints:
        return [f"It adds up: each job was done once, in {now:.1f} s."]
    return ["It does not add up:", *(f"  {complaint}" for complaint in complaints)]


def _deliveries(sums: Sums) -> list[tuple[str, int, str]]:
    made_of = [f"{n} {why.value}" for why, n in sums.reasons.items() if n]
    return [
        ("deliveries", sums.delivered + sums.again, f"{sums.delivered} first ones"),
        ("redelivered", sums.again, ", ".join(made_of)),
        ("accepted twice", sums.twice, ""),
    ]


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


def _plural(count: int, what: str) -> str:
    return f"{count} {what if count == 1 else what.removesuffix('y') + 'ies'}"
