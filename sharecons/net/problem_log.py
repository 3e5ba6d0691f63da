"""Log lines about problems: when one begins, more and more rarely, when it ends."""

from collections.abc import Collection, Hashable, Set
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple

__all__ = ["REPEAT_INTERVAL", "Problem", "ProblemLog", "ProblemTexts"]

REPEAT_INTERVAL: Final = 60.0
"""Seconds from the first line about a problem to the second, while it lasts. Each
further interval is twice as long as the one before."""

MAX_REPEAT_INTERVAL: Final = 3600.0
"""Seconds between two lines about one problem at most."""

CAUSE: Final = ("reason", "message", "advice", "record", "positions")
"""Fields that the line about the end of a problem does not repeat."""


class ProblemTexts(NamedTuple):
    """The log messages about one kind of problem.

    Attributes:
        begins: a WARNING, when it begins.
        lasts: a WARNING, after 1, 3, 7, 15, 31 minutes, and each hour.
        ends: an INFO, with the seconds for which it lasted.
    """

    begins: str
    lasts: str
    ends: str


@dataclass(slots=True)
class Problem:
    """One problem that lasts.

    Attributes:
        fields: context of its log lines.
        since: when it began.
        failed_at: when it was seen last.
        logged_at: when it was logged last, or None.
        interval: seconds from then to its next line.
    """

    fields: dict[str, Any]
    since: float
    failed_at: float
    logged_at: float | None = None
    interval: float = REPEAT_INTERVAL

    def is_line_due(self, now: float, delay: float) -> bool:
        """Return whether to log it; `delay` is the age of a problem that is logged."""
        if self.logged_at is None:
            return now - self.since >= delay
        return now - self.logged_at >= self.interval


class ProblemLog:
    """Logs problems of one kind; call it as often as a problem is seen.

    Args:
        log: a logger of `sharecons.log`.
        delay: seconds for which a problem lasts before its first line.
        gap: seconds after which a problem without a line begins again.
    """

    def __init__(
        self, log: Any, texts: ProblemTexts, *, delay: float = 0.0, gap: float = inf
    ) -> None:
        self._log = log
        self._texts = texts
        self._delay = delay
        self._gap = gap
        self._problems: dict[Hashable, Problem] = {}

    def on_failure(
        self,
        key: Hashable,
        now: float,
        *,
        since: float | None = None,
        delay: float | None = None,
        **fields: Any,
    ) -> None:
        """Begin a problem, or extend it; log it when it is due.

        Args:
            since: when it began, if that is not now.
            delay: as in the constructor, if it differs for this cause.
            fields: context of the log line; the last one counts. An empty message is
                left out.
        """
        problem = self._problems.get(key)
        if problem is None:
            began = now if since is None else since
            problem = self._problems[key] = Problem(fields, began, now)
        elif problem.logged_at is None and now - problem.failed_at > self._gap:
            problem.since = now
        if not fields.get("message", True):
            del fields["message"]
        problem.failed_at, problem.fields = now, fields
        if not problem.is_line_due(now, self._delay if delay is None else delay):
            return
        if problem.logged_at is None:
            self._log.warning(self._texts.begins, **fields)
        else:
            seconds = round(now - problem.since)
            self._log.warning(self._texts.lasts, **fields, seconds=seconds)
            problem.interval = min(2 * problem.interval, MAX_REPEAT_INTERVAL)
        problem.logged_at = now

    def on_success(self, key: Hashable, now: float, text: str = "") -> Problem | None:
        """End a problem, and log that; return it, or None if there was none.

        Args:
            text: the message, if it is not the usual one.
        """
        problem = self._problems.pop(key, None)
        if problem is not None and problem.logged_at is not None:
            fields = {**problem.fields}
            for name in CAUSE:
                fields.pop(name, None)
            seconds = round(now - problem.since, 1)
            self._log.info(text or self._texts.ends, **fields, seconds=seconds)
        return problem

    @property
    def keys(self) -> Set[Hashable]:
        """The keys of all problems that last."""
        return self._problems.keys()

    @property
    def is_logged(self) -> bool:
        """True while a problem lasts that has a line."""
        return bool(self.lasting())

    def lasting(self) -> list[str]:
        """Return the problems that have a line, as text; safe in any thread."""
        return [
            _format(self._texts.begins, problem.fields)
            for problem in tuple(self._problems.values())
            if problem.logged_at is not None
        ]

    def end_quiet(
        self,
        now: float,
        quiet: float,
        text: str = "",
        *,
        keep: Collection[Hashable] = (),
    ) -> list[Hashable]:
        """End the problems that were not seen for `quiet` seconds; return their keys.

        Args:
            text: the message, if it is not the usual one.
            keep: keys of problems that last, however long ago they were seen.
        """
        ended = [
            (key, problem.failed_at)
            for key, problem in self._problems.items()
            if now - problem.failed_at >= quiet and key not in keep
        ]
        for key, failed_at in ended:
            self.on_success(key, failed_at, text)
        return [key for key, _ in ended]


def _format(text: str, fields: dict[str, Any]) -> str:
    """Return a problem as text: its subject, its reason, and advice."""
    about = [f"{name} {fields[name]}" for name in fields if name not in CAUSE]
    about = [f" ({', '.join(about)})"] if about else []
    cause = [f": {fields['reason']}"] if "reason" in fields else []
    advice = [f"; {fields['advice']}"] if "advice" in fields else []
    return "".join((text, *about, *cause, *advice))
