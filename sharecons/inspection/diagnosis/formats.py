"""Numbers and times as text."""

from sharecons.group_state.offset_states import OldestRecord

__all__ = [
    "format_age",
    "format_duration",
    "format_members",
    "format_offsets",
    "format_waiting",
]


def format_age(oldest: OldestRecord, at: float) -> str:
    """Return the age of a record, at a time in seconds since the epoch, as text."""
    age = oldest.age(at)
    return "unknown" if age is None else format_duration(age)


def format_duration(seconds: float) -> str:
    """Format a duration in its two largest units, as in "2 h 3 min"."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number or (name == "s" and not parts):
            parts.append(f"{number} {name}")
        elif parts:
            break
    return " ".join(parts[:2])


def format_offsets(count: int) -> str:
    """Return a number of offsets as text."""
    return "1 offset" if count == 1 else f"{count:,} offsets"


def format_waiting(count: int) -> str:
    """Return that a number of offsets waits."""
    return "1 offset waits" if count == 1 else f"{count:,} offsets wait"


def format_members(count: int) -> str:
    """Return a number of members as text."""
    return "1 member" if count == 1 else f"{count:,} members"
