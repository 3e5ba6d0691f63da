"""When a worker counts as not ready, and when as not live: the application's choice."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from sharecons.config.options import Flag, documented, option, options_of
from sharecons.config.validation import check_number
from sharecons.errors import ConfigurationError
from sharecons.similar_names import did_you_mean
from sharecons.worker.retry_policy import DAY

__all__ = ["CONDITIONS", "HealthPolicy", "check_health"]

CONDITIONS: Final = (
    "starting",
    "stopping",
    "ended",
    "disconnected",
    "missing-topics",
    "unassigned",
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


def _limit(name: str, seconds: float, minimum: float) -> float:
    return check_number(f"HealthPolicy: {name}", seconds, minimum, DAY)


def _optional_limit(name: str, seconds: float | None) -> float | None:
    return None if seconds is None else _limit(name, seconds, 0.001)


def _conditions(argument: str, names: Collection[str]) -> frozenset[str]:
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
                f"{did_you_mean(str(name), CONDITIONS)}"
            )
    return frozenset(names)


@documented()
@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPolicy:
    """The limits of a worker's health, and which conditions fail its liveness.

    Every condition fails the readiness, unless it is in `ignored`.
    docs/worker-running.md describes them.

    Raises:
        ConfigurationError: a limit is no positive number, or a condition does not
            exist, or cannot be one of the liveness.
    """

    stuck_after: float | None = option(
        None,
        _optional_limit,
        "seconds that one call of a handler can take, its timeout and cancellation "
        'included; then "stuck-handler" fails /livez and /readyz. Without a limit the '
        'worker has the condition "busy-handlers" while every call that can run has '
        "run for longer than a lock lasts",
        shown="no limit",
        flag=Flag("--stuck-after", "SECONDS"),
    )
    window_held_after: float | None = option(
        60.0,
        _optional_limit,
        "seconds for which one record can hold up its partition; then "
        '"held-window" fails /readyz. None for no limit',
        shown="60",
        flag=Flag("--window-held-after", "SECONDS"),
    )
    # The event loop shows that it runs twice a second.
    loop_blocked_after: float = option(
        5.0,
        partial(_limit, minimum=1.0),
        "seconds for which the event loop can be blocked; then the condition is "
        '"blocked-loop"',
    )
    topics_missing_after: float = option(
        30.0,
        partial(_limit, minimum=0.0),
        "seconds for which a subscribed topic can be missing; then the condition is "
        '"missing-topics"',
    )
    liveness: Collection[str] = option(
        ("blocked-loop", "stuck-handler"),
        _conditions,
        "conditions that fail /livez. A supervisor such as Kubernetes restarts the "
        "process then, and the records that it holds are delivered again",
        shown="blocked-loop and stuck-handler",
        flag=Flag("--liveness", "CONDITION", is_repeatable=True),
    )
    ignored: Collection[str] = option(
        (),
        _conditions,
        "conditions that do not fail /readyz",
        shown="none",
        flag=Flag("--ignore-condition", "CONDITION", is_repeatable=True),
    )

    def __post_init__(self) -> None:
        for name, entry in options_of(HealthPolicy).items():
            object.__setattr__(self, name, entry.check(name, getattr(self, name)))
        for each in OF_A_SOUND_PROCESS:
            if each in self.liveness:
                raise ConfigurationError(
                    f"HealthPolicy: liveness cannot have the condition {each!r}: a "
                    "restart does not end it"
                )


def check_health(name: str, health: object) -> HealthPolicy:
    """Return the policy; the default one for None."""
    if health is None:
        return HealthPolicy()
    if not isinstance(health, HealthPolicy):
        raise ConfigurationError(
            f"{name} must be a HealthPolicy, not {health!r}: pass "
            "HealthPolicy(stuck_after=600.0), for example"
        )
    return health
