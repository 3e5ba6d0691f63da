"""Topics for records that wait too long to be held in their own partition.

Theory of operation
-------------------
A record that is held for a retry keeps the start of its partition's window (see
`window`). One that would fill the window is written to a retry topic and accepted at
its source. The same worker consumes the retry topic and holds the record there until it
is due. Each topic is for one delay: its records come due in about the order of their
offsets, so those at the start of the window leave it first.

Headers name the origin, the attempts and the due time. Any producer can write such
headers to any topic, so they are read from the worker's retry topics only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

from sharecons._record import Headers
from sharecons.config.validation import HOUR, check_number, check_topic
from sharecons.copies.dead_letter_headers import (
    Origin,
    origin_headers,
    read_retry_origin,
)
from sharecons.errors import ConfigurationError

__all__ = [
    "RetryState",
    "RetryTopic",
    "RetryTopics",
    "check_retry_topics",
    "read_retry_state",
    "retry_headers",
]

DUE: Final = "sharecons.retry.due"
MAX_DELAY: Final = 24 * 7 * HOUR
STRETCH: Final = 1.5
"""The maximum ratio of a delay to the delay of its topic: jitter varies delays."""


@dataclass(frozen=True, slots=True)
class RetryTopic:
    """A topic for records that are retried after about `delay` seconds.

    The topic must exist. Its partitions limit how many records wait at a time: each
    takes up to the number in its window (2,000 by default).

    Raises:
        ConfigurationError: the name is not a topic's, or the delay is out of range.
    """

    topic: str
    delay: float

    def __post_init__(self) -> None:
        check_topic("retry_topics", self.topic)
        check_number("RetryTopic.delay", self.delay, 0.001, MAX_DELAY)


class RetryState(NamedTuple):
    """Contents of the headers of a record in a retry topic.

    Attributes:
        origin: the record that failed, with its attempts until now.
        due: when it is tried again, in milliseconds since the epoch.
    """

    origin: Origin
    due: int


@final
class RetryTopics:
    """The retry topics of a worker, by their delays.

    Raises:
        ConfigurationError: a topic or a delay occurs twice.
    """

    def __init__(self, topics: Iterable[RetryTopic]) -> None:
        self._topics = sorted(topics, key=lambda each: each.delay)
        self.names = frozenset(each.topic for each in self._topics)
        delays = {each.delay for each in self._topics}
        if not len(self.names) == len(delays) == len(self._topics):
            raise ConfigurationError(
                "retry_topics must have different topics and different delays, not "
                f"{self._topics!r}"
            )

    def __bool__(self) -> bool:
        return bool(self._topics)

    @property
    def longest_delay(self) -> float:
        """The longest delay, in seconds, that records can have."""
        return STRETCH * self._topics[-1].delay

    def longest_waits(self) -> dict[str, float]:
        """Return the longest delay, in seconds, of the records in each topic."""
        return {each.topic: STRETCH * each.delay for each in self._topics}

    def topic_for(self, delay: float) -> str:
        """Return the topic for a record that is due after `delay` seconds.

        Its delay is the shortest that is long enough, or the longest of all.
        """
        fitting = (each for each in self._topics if delay <= STRETCH * each.delay)
        return next(fitting, self._topics[-1]).topic

    def check_delays(self, delays: Sequence[float]) -> None:
        """Check that the delays of a retry policy fit.

        Raises:
            ConfigurationError: one is longer than the delays of all topics.
        """
        longest = max(delays)
        if self._topics and longest > self.longest_delay:
            last = self._topics[-1]
            raise ConfigurationError(
                f"retries can wait {longest:g} s, but the retry topic with the longest "
                f"delay is {last.topic!r} with {last.delay:g} s: records that are due "
                "later would block it. Add one with a longer delay"
            )


def retry_headers(origin: Origin, due: int) -> Headers:
    """Return the headers that `read_retry_state` reads."""
    return (*origin_headers(origin), (DUE, b"%d" % due))


def read_retry_state(headers: Headers) -> RetryState | None:
    """Read the headers of a record in a retry topic; return None if they are invalid.

    If a name occurs more than once, the last one counts.
    """
    origin = read_retry_origin(headers)
    dues = [value for name, value in headers if name == DUE and value is not None]
    if origin is None or not dues or not dues[-1].isdigit() or len(dues[-1]) > 18:
        return None
    return RetryState(origin, int(dues[-1]))


def check_retry_topics(name: str, topics: object) -> RetryTopics:
    """Return the retry topics.

    Raises:
        ConfigurationError: it is not a sequence of `RetryTopic` objects, or a topic or
            a delay occurs twice.
    """
    if isinstance(topics, RetryTopic):
        raise ConfigurationError(
            f"{name} must be a sequence; write {name}=[{topics!r}]"
        )
    given = _as_tuple(topics)
    if given is None or not all(isinstance(each, RetryTopic) for each in given):
        raise ConfigurationError(
            f"{name} must be a sequence of RetryTopic, not "
            f"{topics if given is None else list(given)!r}; use "
            "[RetryTopic('orders.retry', 60.0)]"
        )
    return RetryTopics(given)


def _as_tuple(given: object) -> tuple[Any, ...] | None:
    """Return the elements of an iterable; None for others, strings and mappings."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return None
    return tuple(given)
