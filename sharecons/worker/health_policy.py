"""When a worker counts as not ready, and when as not live: the application's choice."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sharecons.config.validation import check_number
from sharecons.errors import ConfigurationError
from sharecons.worker.retry_policy import DAY

__all__ = ["CONDITIONS", "HealthPolicy"]

CONDITIONS: Final = (
    "starting",
    "stopping",
    "ended",
    "disconnected",
    "missing-topics",
    "no-threads",
    "stuck-handler",
    "busy-handlers",
    "held-window",
    "full-memory",
    "hot-key",
    "blocked-loop",
)
"""The names of all conditions."""

OF_A_SOUND_PROCESS: Final = ("starting", "stopping", "ended")
"""Conditions that no restart ends: as reasons for one they would repeat it forever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPolicy:
    """The limits of a worker's health, and which conditions fail its liveness.

    Every condition fails the readiness, unless it is in `ignored`.
    docs/worker-running.md describes them.

    Attributes:
        stuck_after: seconds that one call of a handler can take, its `timeout` and what
            follows included; then the worker has the condition "stuck-handler". None
            for no limit; then it has the condition "busy-handlers" while every call
            that can run has run for longer than a lock lasts.
        window_held_after: seconds for which one record can hold up its partition; then
            the condition is "held-window". None for no limit.
        loop_blocked_after: seconds for which the event loop can be blocked; then the
            condition is "blocked-loop".
        topics_missing_after: seconds for which a subscribed topic can be missing; then
            the condition is "missing-topics".
        liveness: the conditions that fail the liveness: a supervisor such as Kubernetes
            restarts the process then, and the records that it holds are delivered
            again.
        ignored: conditions that do not fail the readiness.

    Raises:
        ConfigurationError: a limit is no positive number, or a condition does not
            exist, or cannot be one of the liveness.
    """

    stuck_after: float | None = None
    window_held_after: float | None = 60.0
    loop_blocked_after: float = 5.0
    topics_missing_after: float = 30.0
    liveness: Collection[str] = ("blocked-loop", "stuck-handler")
    ignored: Collection[str] = ()

    def __post_init__(self) -> None:
        limits = {
            "stuck_after": self.stuck_after,
            "window_held_after": self.window_held_after,
        }
        for name, seconds in limits.items():
            if seconds is not None:
                check_number(f"HealthPolicy: {name}", seconds, 0.001, DAY)
        # The event loop shows that it runs twice a second.
        check_number(
            "HealthPolicy: loop_blocked_after", self.loop_blocked_after, 1.0, DAY
        )
        check_number(
            "HealthPolicy: topics_missing_after", self.topics_missing_after, 0.0, DAY
        )
        for name in ("liveness", "ignored"):
            object.__setattr__(self, name, _check_names(name, getattr(self, name)))
        for each in OF_A_SOUND_PROCESS:
            if each in self.liveness:
                raise ConfigurationError(
                    f"HealthPolicy: liveness cannot have the condition {each!r}: a "
                    "restart does not end it"
                )


def _check_names(argument: str, names: Collection[str]) -> frozenset[str]:
    if isinstance(names, str) or not isinstance(names, Collection):
        raise ConfigurationError(
            f"HealthPolicy: {argument} must be names of conditions, not {names!r}; "
            f"pass a tuple, such as {CONDITIONS[-1:]}"
        )
    for name in names:
        if name not in CONDITIONS:
            raise ConfigurationError(
                f"HealthPolicy: {argument} has {name!r}, which is no condition; the "
                f"conditions are {', '.join(CONDITIONS)}"
            )
    return frozenset(names)
