"""Decides when a failed record is tried again, and when it has failed for good."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, final

from sharecons.config.options import Flag, documented, option, options_of
from sharecons.config.validation import HOUR, check_count, check_number
from sharecons.error_text import error_text
from sharecons.errors import ConfigurationError
from sharecons.guard import exceptions_of, is_a
from sharecons.worker.outcomes import (
    DeadLetter,
    DeadLettered,
    RecordOutcome,
    Reject,
    Rejected,
    Retry,
    RetryAfter,
    decision_of,
    delay_of,
    reason_of,
)

__all__ = ["RetryPolicy", "check_retry"]

DAY: Final = 24 * HOUR
MAX_MULTIPLIER: Final = 100.0
MAX_DOUBLINGS: Final = 64
"""The most steps by which a delay grows, so that it stays a finite number."""


@final
class _DefaultCount(int):
    """A number that was not given: a policy by exception inherits the outer one."""


@final
class _DefaultSeconds(float):
    """As `_DefaultCount`."""


_DEFAULTS: Final = (_DefaultCount, _DefaultSeconds)


@documented()
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, and after which delays, a failed record is tried again.

    The delay is `initial` seconds after the first attempt, `multiplier` times as long
    after each further one, and at most `maximum`. It then varies at random by the
    fraction `jitter`, so that records that failed together are retried apart.

    Args:
        by_exception: other policies, by exception class. The class that is nearest in
            the exception's method resolution order counts; for an exception group
            without a policy, its first exception that has one. They inherit what they
            do not set. Their own `by_exception` is not used.

    Raises:
        ConfigurationError: an argument is invalid.
    """

    max_attempts: int = option(
        _DefaultCount(5),
        partial(check_count, minimum=1),
        "how often the handler is called for a record, in all",
        flag=Flag("--max-attempts", "N"),
    )
    initial: float = option(
        _DefaultSeconds(1.0),
        partial(check_number, minimum=0.0, maximum=DAY),
        "seconds before the first retry; each further delay is twice as long. Or "
        "`multiplier` times as long",
        shown="1",
        flag=Flag("--retry-initial", "SECONDS"),
    )
    maximum: float = option(
        _DefaultSeconds(60.0),
        partial(check_number, minimum=0.0, maximum=DAY),
        "the longest delay of a retry, in seconds",
        shown="60",
        flag=Flag("--retry-maximum", "SECONDS"),
    )
    multiplier: float = option(
        _DefaultSeconds(2.0),
        partial(check_number, minimum=1.0, maximum=MAX_MULTIPLIER),
        "at least 1.0, which keeps all delays equal",
    )
    jitter: float = option(
        _DefaultSeconds(0.2),
        partial(check_number, minimum=0.0, maximum=1.0),
        "between 0.0 and 1.0",
    )
    by_exception: Mapping[type[Exception], "RetryPolicy"] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def __post_init__(self) -> None:
        for name, entry in options_of(RetryPolicy).items():
            entry.check(name, getattr(self, name))
        self._fit_defaults()
        if self.initial > self.maximum:
            raise ConfigurationError(
                f"initial ({self.initial:g} s) must not be above maximum "
                f"({self.maximum:g} s)"
            )
        if not isinstance(self.by_exception, Mapping):
            raise ConfigurationError(
                "by_exception must be a mapping of exception classes to policies, not "
                f"{self.by_exception!r:.200}"
            )
        inheriting = {
            kind: self._inherited_by(kind, policy)
            for kind, policy in self.by_exception.items()
        }
        self._set("by_exception", MappingProxyType(inheriting))

    def _fit_defaults(self) -> None:
        """Fit a delay that was not given to the other one."""
        if self.initial > self.maximum:
            if isinstance(self.initial, _DefaultSeconds):
                self._set("initial", _DefaultSeconds(self.maximum))
            elif isinstance(self.maximum, _DefaultSeconds):
                self._set("maximum", _DefaultSeconds(self.initial))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # the class is frozen

    def _inherited_by(self, kind: object, policy: object) -> "RetryPolicy":
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise ConfigurationError(
                f"by_exception must have exception classes as keys, not {kind!r}"
            )
        if not isinstance(policy, RetryPolicy):
            raise ConfigurationError(
                f"by_exception[{kind.__name__}] must be a RetryPolicy, not {policy!r}"
            )
        names = ("max_attempts", "initial", "maximum", "multiplier", "jitter")
        unset: dict[str, Any] = {
            name: getattr(self, name)
            for name in names
            if isinstance(getattr(policy, name), _DEFAULTS)
        }
        for name in ("initial", "maximum"):
            if name in unset:
                unset[name] = _DefaultSeconds(unset[name])
        return replace(policy, **unset)

    def for_error(self, error: Exception) -> "RetryPolicy":
        """Return the policy for an exception, or for one inside an exception group."""
        if not self.by_exception:
            return self
        for each in (error, *_grouped(error)):
            for kind in type.mro(type(each)):
                policy = self.by_exception.get(kind)
                if policy is not None:
                    return policy
        return self

    @property
    def most_attempts(self) -> int:
        """The highest max_attempts of this policy and of those by exception."""
        return max(each.max_attempts for each in (self, *self.by_exception.values()))

    def longest_delays(self) -> list[float]:
        """Return the longest delay of this policy, and of those by exception."""
        policies = [self, *self.by_exception.values()]
        return [each.maximum * (1.0 + each.jitter) for each in policies]

    def delay(self, attempt: int, chance: float) -> float:
        """Return the seconds between a failed attempt and the next one.

        Args:
            attempt: the number of the failed one; 1 is the first.
            chance: a random number from 0.0 to 1.0.
        """
        growth = self.multiplier ** min(attempt - 1, MAX_DOUBLINGS)
        delay = min(self.initial * growth, self.maximum)
        return delay * (1.0 + self.jitter * (2.0 * chance - 1.0))

    def decide(
        self,
        error: Exception,
        *,
        attempt: int,
        chance: float,
        has_dead_letter_queue: bool,
    ) -> RecordOutcome:
        """Return the outcome of a record whose handler raised `error`.

        Args:
            attempt, chance: as of `delay`.
            has_dead_letter_queue: a record that has failed for good is written there
                instead of being rejected.
        """
        failed_for_good = DeadLettered if has_dead_letter_queue else Rejected
        decision = decision_of(error)
        error = error if decision is None else decision
        if decision is not None and is_a(decision, (Reject, DeadLetter)):
            reason = reason_of(decision)
            if has_dead_letter_queue and is_a(decision, DeadLetter):
                return DeadLettered(reason, cause="decision")
            return Rejected(reason)
        policy = self.for_error(error)
        if attempt >= policy.max_attempts:
            return failed_for_good(_last_failure(error, attempt), error)
        after = delay_of(decision) if decision is not None else None
        if after is None:
            after = policy.delay(attempt, chance)
        return RetryAfter(after, attempt + 1, error)


def _grouped(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of an exception group, and of groups in it."""
    pending = [*reversed(exceptions_of(error))]
    while pending:
        each = pending.pop()
        yield each
        pending += reversed(exceptions_of(each))


def _last_failure(error: Exception, attempt: int) -> str:
    attempts = "1 attempt" if attempt == 1 else f"{attempt} attempts"
    if is_a(error, Retry):
        return f"the handler requested another attempt after {attempts}"
    return f"failed after {attempts}: {error_text(error)}"


def check_retry(name: str, retry: object) -> RetryPolicy:
    """Return the policy; the default one for None."""
    if retry is None:
        return RetryPolicy()
    if not isinstance(retry, RetryPolicy):
        raise ConfigurationError(
            f"{name} must be a RetryPolicy, not {retry!r}; use RetryPolicy("
            "max_attempts=5)"
        )
    return retry
