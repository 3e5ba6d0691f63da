"""A suggestion for a misspelled name, for error messages."""

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `; did you mean 'NAME'?`, or nothing if no known name is similar.

    Args:
        name: the misspelled one; capitals do not matter.
        known: the names that exist.
        cutoff: similarity that a name needs, from 0 to 1.
    """
    # Imported late: only needed for errors, and slow because it imports re.
    from difflib import get_close_matches

    names = {each.lower(): each for each in sorted(known)}
    similar = get_close_matches(name.lower(), names, n=1, cutoff=cutoff)
    return f"; did you mean {names[similar[0]]!r}?" if similar else ""
